internal import CLinux
internal import Glibc

/// A standard stream, buffered.
///
/// Output is written when 64 KiB have been buffered, at `flush()` and at the end of the value's
/// lifetime. If the reader of standard output has closed its end, the write fails and all work is
/// asked to stop (`StopSignals.isStopping`); the program then ends by SIGPIPE (`endByBrokenPipe`).
public final class StandardStream {
  private let raw: Int32
  private let name: ByteString
  private var buffer: [UInt8] = []

  init(_ raw: Int32, _ name: ByteString) {
    self.raw = raw
    self.name = name
  }

  deinit { try? flush() }

  /// Returns the stream for results.
  public static func output() -> StandardStream { StandardStream(1, "standard output") }

  /// Returns the stream for messages.
  public static func errors() -> StandardStream { StandardStream(2, "standard error") }

  /// Whether the stream is a terminal.
  public var isTerminal: Bool { isatty(raw) == 1 }

  /// Whether the stream is a file or a null device, not a terminal or a pipe.
  public var isFile: Bool { lseek(raw, 0, SEEK_CUR) >= 0 }

  /// The width of the terminal in columns, or nil if the stream is not a terminal.
  public var columns: Int? {
    let columns = cl_terminal_columns(raw)
    return columns > 0 ? columns : nil
  }

  /// Appends text.
  public func write(_ text: String) throws(SystemError) { try write(bytes: text.utf8) }

  /// Appends bytes.
  public func write(bytes: some Sequence<UInt8>) throws(SystemError) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= 64 * 1024 { try flush() }
  }

  /// Appends a span of bytes.
  public func write(_ bytes: Span<UInt8>) throws(SystemError) {
    buffer.append(bytes)
    if buffer.count >= 64 * 1024 { try flush() }
  }

  /// Writes the buffered bytes.
  public func flush() throws(SystemError) {
    defer { buffer.removeAll(keepingCapacity: true) }
    do {
      try enqueue()
    } catch {
      if raw == 1, error.isBrokenPipe { cl_note_lost_reader() }
      throw error
    }
  }

  private func enqueue() throws(SystemError) {
    var written = 0
    while written < buffer.count {
      written += try SystemError.check(.write, name) {
        unsafe buffer.withUnsafeBytes {
          unsafe cl_write(raw, $0.baseAddress?.advanced(by: written), $0.count - written)
        }
      }
    }
  }

  /// Makes writes to a pipe without a reader fail, instead of ending the program by SIGPIPE within
  /// work that has to be finished in order. A signal that was ignored at the start stays ignored.
  public static func holdBrokenPipe() throws(SystemError) {
    _ = try SystemError.check(.watchSignals, "this process") { cl_hold_broken_pipe() }
  }

  /// Reserves the numbers of closed standard streams, so that files that the program opens do not
  /// get them: messages would be written into these files. Reads from and writes to these streams
  /// still fail. Applies to the whole process, so call it first.
  public static func occupyClosed() throws(SystemError) {
    _ = try SystemError.check(.open, "standard streams") { cl_occupy_standard_streams() }
  }

  /// Makes writes beyond the limit of file sizes (`ulimit -f`) fail, instead of ending the program
  /// by SIGXFSZ.
  public static func failAtSizeLimit() throws(SystemError) {
    _ = try SystemError.check(.watchSignals, "this process") { cl_fail_at_size_limit() }
  }

  /// Whether a write to standard output has failed because its reader has ended; never true if
  /// SIGPIPE was ignored at the start.
  public static var hasLostReader: Bool { cl_has_lost_reader() != 0 }

  /// Ends the program by SIGPIPE, as the signal's default action does.
  public static func endByBrokenPipe() -> Never { cl_end_by_broken_pipe() }

  /// Whether standard input is a terminal.
  public static var isInputTerminal: Bool { isatty(0) == 1 }

  /// Reads a line of standard input, at most `limit` bytes, without the newline; nil at the end of
  /// the input. Bytes after the line stay unread.
  public static func readLine(limit: Int) throws(SystemError) -> [UInt8]? {
    var line: [UInt8] = []
    var byte: [UInt8] = [0]
    while line.count < limit {
      let count = try SystemError.check(.read, "standard input") {
        unsafe byte.withUnsafeMutableBytes { unsafe cl_read(0, $0.baseAddress, 1) }
      }
      if count == 0 { return line.isEmpty ? nil : line }
      if byte[0] == UInt8(ascii: "\n") { break }
      line.append(byte[0])
    }
    return line
  }

  /// Reads standard input to its end; nil if it has more than `limit` bytes.
  public static func readInput(limit: Int) throws(SystemError) -> [UInt8]? {
    let input = Descriptor(adopting: 0, name: "standard input")
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    do throws(SystemError) {
      while true {
        let count = try input.read(into: &chunk)
        bytes.append(contentsOf: chunk[..<count])
        if count < chunk.count || bytes.count > limit { break }
      }
    } catch {
      input.release()
      throw error
    }
    input.release()
    return bytes.count > limit ? nil : bytes
  }
}
