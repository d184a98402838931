internal import CLinux
internal import Glibc

/// One of the streams that a program is born with, buffered.
///
/// What is appended is written when 64 KiB have gathered, at `flush()` and when the value ends. A
/// reader that went away ends the program by SIGPIPE, as it does every filter.
public final class StandardStream {
  private let raw: Int32
  private let name: ByteString
  private var buffer: [UInt8] = []

  init(_ raw: Int32, _ name: ByteString) {
    self.raw = raw
    self.name = name
  }

  deinit { try? flush() }

  /// The stream for results.
  public static func output() -> StandardStream { StandardStream(1, "standard output") }

  /// The stream for talk.
  public static func errors() -> StandardStream { StandardStream(2, "standard error") }

  /// Whether a person reads it.
  public var isTerminal: Bool { isatty(raw) == 1 }

  /// Whether it goes to a file, or to nothing: to no terminal and no other program.
  public var isFile: Bool { lseek(raw, 0, SEEK_CUR) >= 0 }

  /// How many columns the terminal has; nil when it is none.
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

  /// Appends bytes that lie together.
  public func write(_ bytes: Span<UInt8>) throws(SystemError) {
    unsafe bytes.withUnsafeBufferPointer { unsafe buffer.append(contentsOf: $0) }
    if buffer.count >= 64 * 1024 { try flush() }
  }

  /// Writes what has gathered.
  public func flush() throws(SystemError) {
    var written = 0
    defer { buffer.removeAll(keepingCapacity: true) }
    while written < buffer.count {
      written += try SystemError.check(.write, name) {
        unsafe buffer.withUnsafeBytes {
          unsafe cl_write(raw, $0.baseAddress?.advanced(by: written), $0.count - written)
        }
      }
    }
  }

  /// Whether a person writes standard input.
  public static var isInputTerminal: Bool { isatty(0) == 1 }

  /// Reads a line of standard input, at most `limit` bytes of it, without the newline; nil where the
  /// input has ended. What comes behind the line is left to be read.
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

  /// Reads standard input to its end, at most `limit` bytes; nil when there are more.
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
