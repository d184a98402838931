internal import Codecs
internal import SystemIO

/// The members of a zip archive on their way to an output.
struct ZipOutput: ~Copyable {
  private let output: ByteOutput
  /// The action in errors.
  private let action: String
  private var writer: ArchiveWriter
  private var buffer: [UInt8] = []

  /// Creates an archive.
  init(
    _ form: ArchiveWriter.Form, to output: @escaping ByteOutput, action: String
  ) throws(InterchangeError) {
    self.output = output
    self.action = action
    do throws(CodecError) { writer = try ArchiveWriter(form) } catch {
      throw Self.fault(error, action)
    }
  }

  /// Begins a member.
  ///
  /// - Throws: `unrepresentable` if a zip archive cannot hold it; others can follow.
  mutating func begin(_ member: PaxMember) throws(InterchangeError) {
    var failure: CodecError?
    do throws(CodecError) { try writer.begin(member, to: &buffer) } catch { failure = error }
    if failure == nil || failure?.kind == .unrepresentable { try flush() }
    if let failure { throw Self.fault(failure, action) }
  }

  /// Writes bytes of the current member.
  mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    do throws(CodecError) { try writer.write(bytes, to: &buffer) } catch {
      throw Self.fault(error, action)
    }
    try flush()
  }

  /// Writes bytes of the current member.
  mutating func write(_ bytes: Span<UInt8>) throws(InterchangeError) {
    try bytes.withUnsafeBytes { (raw) throws(InterchangeError) in try write(raw) }
  }

  /// Writes the end of the archive: a header for each member, in portions.
  mutating func finish() throws(InterchangeError) {
    var failure: InterchangeError?
    do throws(CodecError) {
      try writer.finish(to: &buffer) { [output] portion in
        do throws(InterchangeError) { try output(portion.span) } catch {
          failure = error
          return false
        }
        portion.removeAll(keepingCapacity: true)
        return true
      }
    } catch { throw failure ?? Self.fault(error, action) }
    try flush()
  }

  private mutating func flush() throws(InterchangeError) {
    if buffer.isEmpty { return }
    try output(buffer.span)
    buffer.removeAll(keepingCapacity: true)
  }

  private static func fault(_ error: CodecError, _ action: String) -> InterchangeError {
    InterchangeError(error, action, subject: "the zip archive")
  }
}
