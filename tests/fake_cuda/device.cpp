// A CUDA device that is there and does nothing, for torch's builds without CUDA.
//
// Fake CUDA tensors have no numbers and run no kernels, but autograd asks the guard of their device for its streams, and
// indexing for the device itself. A build without CUDA has no guard: asked for it, it ends the process. This one answers.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10::impl {

struct FirstDevice final : NoOpDeviceGuardImpl<DeviceType::CUDA> {
  static Device device() { return Device(DeviceType::CUDA, 0); }
  static Stream stream() { return Stream(Stream::DEFAULT, device()); }
  Device exchangeDevice(Device) const override { return device(); }
  Device getDevice() const override { return device(); }
  Stream getStream(Device) const noexcept override { return stream(); }
  Stream exchangeStream(Stream) const noexcept override { return stream(); }
};

C10_REGISTER_GUARD_IMPL(CUDA, FirstDevice)

}  // namespace c10::impl

namespace at {

// The name under which torch looks for it.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
