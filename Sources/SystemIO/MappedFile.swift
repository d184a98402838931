internal import CLinux
internal import Glibc

/// A file's bytes as the kernel maps them into memory, read-only: what is not looked at is not read,
/// and the kernel may forget what it has read.
///
/// Another program that changes the file changes the bytes, and one that makes it shorter ends this
/// program when it looks at what is gone; so does a disk that does not give them. So only files are mapped that nobody else has reason to
/// change, and what is read of them is held within bounds each time.
@safe
public final class MappedFile: @unchecked Sendable {
  // Unchecked: the memory is only read, and lasts as long as the object.
  private let bytes: UnsafeRawBufferPointer

  /// Maps all bytes that an open file has now; the file can be closed then.
  public init(_ file: borrowing Descriptor) throws(SystemError) {
    let size = try file.status().size
    guard size > 0 else {
      unsafe bytes = UnsafeRawBufferPointer(start: nil, count: 0)
      return
    }
    guard let count = Int(exactly: size) else {
      throw SystemError(.map, file.name, number: EFBIG)
    }
    let raw = file.raw
    var start = unsafe UnsafeMutableRawPointer?.none
    _ = try SystemError.check(.map, file.name) {
      unsafe start = mmap(nil, count, PROT_READ, MAP_PRIVATE, raw, 0)
      return unsafe start == MAP_FAILED ? -Int(errno) : 0
    }
    unsafe bytes = UnsafeRawBufferPointer(start: start, count: count)
  }

  /// Has the program end with exit status 1 and this message, of at most 1 KiB, on the standard error
  /// where a mapped file cannot be read any more, and not with a signal. It is not taken back.
  public static func endAtLoss(saying message: String) throws(SystemError) {
    _ = try SystemError.check(.watchSignals, "this process") {
      unsafe cl_end_at_loss(message)
    }
  }

  deinit {
    guard let start = unsafe bytes.baseAddress else { return }
    unsafe munmap(UnsafeMutableRawPointer(mutating: start), bytes.count)
  }

  /// How many bytes there are.
  public var count: Int { unsafe bytes.count }

  /// Calls `body` with all bytes, which last for the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) -> Result in
      try unsafe body(bytes.bytes)
    }
  }
}
