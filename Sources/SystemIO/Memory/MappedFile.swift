internal import CLinux
internal import Glibc

/// A file mapped into memory, read-only. Pages are read on access and can be evicted.
///
/// If another program changes the file, the bytes change. If the file is truncated or the disk
/// fails, an access ends this program. So only files that no other program has a reason to change
/// are mapped, and reads from them are validated each time.
@safe
public final class MappedFile: @unchecked Sendable {
  // Unchecked: the memory is only read, and lasts as long as the object.
  private let bytes: UnsafeRawBufferPointer

  /// Maps the current content of an open file, which can be closed afterwards.
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

  /// Makes the program print a message of at most 1 KiB to standard error and exit with status 1,
  /// instead of being killed by a signal, if a mapped file can no longer be read. Cannot be undone.
  public static func exitOnReadFailure(saying message: String) throws(SystemError) {
    _ = try SystemError.check(.watchSignals, "this process") {
      unsafe cl_end_at_loss(message)
    }
  }

  deinit {
    guard let start = unsafe bytes.baseAddress else { return }
    unsafe munmap(UnsafeMutableRawPointer(mutating: start), bytes.count)
  }

  /// The number of bytes.
  public var count: Int { unsafe bytes.count }

  /// Calls `body` with all bytes, which are valid during the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) -> Result in
      try unsafe body(bytes.bytes)
    }
  }
}
