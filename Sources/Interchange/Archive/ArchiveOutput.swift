internal import Codecs
package import SystemIO

/// Receives the bytes of an archive in order.
package typealias ByteOutput = (Span<UInt8>) throws(InterchangeError) -> Void

/// The compression of a tar archive.
package enum ArchiveCompression: String, Sendable, CaseIterable {
  case none
  case gzip
  case zstd

  /// Returns the compression that the ending of a file's name stands for: `.zst`, `.tzst`, `.gz`,
  /// `.tgz`, in any case; none for any other.
  package static func ofName(_ name: ByteString) -> ArchiveCompression {
    let name = ByteString(
      name.bytes.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 })
    if name.hasSuffix(".zst") || name.hasSuffix(".tzst") { return .zstd }
    if name.hasSuffix(".gz") || name.hasSuffix(".tgz") { return .gzip }
    return .none
  }
}

/// An output that compresses what it receives.
final class CompressedOutput {
  private let output: ByteOutput
  private var writer: ArchiveWriter
  private var buffer: [UInt8] = []

  /// Compresses to an output; nil without a compression.
  init?(
    _ compression: ArchiveCompression, to output: @escaping ByteOutput
  ) throws(InterchangeError) {
    self.output = output
    do throws(CodecError) {
      switch compression {
      case .none: return nil
      case .gzip: writer = try ArchiveWriter(.gzip)
      case .zstd: writer = try ArchiveWriter(.zstd)
      }
    } catch { throw InterchangeError(error, "compress", subject: "the archive") }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    do throws(CodecError) {
      try writer.write(bytes, to: &buffer)
    } catch { throw InterchangeError(error, "compress", subject: "the archive") }
    try flush()
  }

  func finish() throws(InterchangeError) {
    do throws(CodecError) {
      try writer.finish(to: &buffer)
    } catch { throw InterchangeError(error, "compress", subject: "the archive") }
    try flush()
  }

  private func flush() throws(InterchangeError) {
    if buffer.isEmpty { return }
    // A span cannot refer to a property of an object.
    var bytes: [UInt8] = []
    swap(&bytes, &buffer)
    try output(bytes.span)
    bytes.removeAll(keepingCapacity: true)
    swap(&bytes, &buffer)
  }
}
