internal import CLinux
internal import Glibc
internal import Synchronization

/// The standard input of a program that runs (`RunningProgram`), written from any thread.
///
/// It is a socket, so that a write to a program that has ended fails instead of ending this process
/// by SIGPIPE. A write waits while the program does not read.
public final class ProgramInput: Sendable {
  private let own: Descriptor
  /// The end that the program reads from, or -1 once the program has it.
  private let other: Mutex<Int32>

  /// Creates an input that no program reads yet.
  ///
  /// - Parameter name: the name of the program, for errors.
  public init(name: ByteString) throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    _ = try SystemError.check(.run, name) {
      unsafe ends.withUnsafeMutableBufferPointer { ends -> Int in
        guard let first = ends.baseAddress else { return -Int(EFAULT) }
        return unsafe cl_socket_pair(first)
      }
    }
    own = Descriptor(adopting: ends[0], name: name)
    other = Mutex(ends[1])
  }

  deinit { closeProgramEnd() }

  /// The end that the program reads from.
  var programEnd: Int32 { other.withLock { $0 } }

  /// Closes the end that the program has, so that writes fail after the program ends.
  func closeProgramEnd() {
    other.withLock { end in
      if end >= 0 { _ = cl_close(end) }
      end = -1
    }
  }

  /// Writes all bytes. Not for use by several threads at once: their bytes would be mixed.
  ///
  /// - Parameter mayWait: called several times a second while the program reads nothing. If it
  ///   returns false, the write fails.
  /// - Throws: if the program has ended or the input is closed, or the write was given up.
  public func write(_ bytes: borrowing [UInt8], mayWait: () -> Bool) throws(SystemError) {
    let span = bytes.span
    let raw = own.raw
    var written = 0
    while written < span.count {
      let count = try SystemError.check(.write, own.name) {
        unsafe span.withUnsafeBytes {
          unsafe cl_send(
            raw, $0.baseAddress?.advanced(by: written), $0.count - written, Self.step)
        }
      }
      written += count
      if count == 0, !mayWait() { throw SystemError(.write, own.name, number: ETIMEDOUT) }
    }
  }

  /// The time between two calls of `mayWait`, in milliseconds.
  private static let step: Int32 = 200

  /// Ends the input. A thread that is writing fails.
  public func close() { _ = cl_shut_down(own.raw) }
}
