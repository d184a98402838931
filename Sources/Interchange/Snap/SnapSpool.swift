internal import Codecs
internal import SystemIO

/// A copy of an archive's member in an unnamed file, with its SHA3-384.
struct SpooledMember: ~Copyable {
  let file: Descriptor
  let sum: [UInt8]

  /// Copies the content of the current member.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of bytes.
  ///   - name: The name of the copy for messages.
  /// - Throws: `damagedEntry` for damage or content beyond the limit if the archive can be read
  ///   further; `damaged`; `system`.
  init(
    of reader: inout ArchiveReader, limit: UInt64, name: ByteString, in archive: ArchiveFile
  ) throws(InterchangeError) {
    let file: Descriptor
    do throws(SystemError) { file = try TemporaryFile.make() } catch {
      throw InterchangeError(error, SnapSource.action, subject: archive.name)
    }
    var digest = MessageDigest(.sha3x384)
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    var size: UInt64 = 0
    while true {
      let count = try SnapSource.read(from: &reader, into: &buffer, of: name, in: archive)
      if count == 0 { break }
      size += UInt64(count)
      guard size <= limit else {
        throw InterchangeError(
          .damagedEntry, SnapSource.action, subject: name,
          reason: "it has more than \(limit) bytes, far more than its archive")
      }
      digest.update(buffer.span.extracting(0..<count))
      do throws(SystemError) { try file.write(buffer, from: 0, to: count) } catch {
        throw TemporaryFile.failure(error, SnapSource.action, subject: name)
      }
    }
    self.file = file
    sum = digest.finish()
  }
}

/// An unnamed file that receives the bytes of an archive, with its SHA3-384.
final class SpooledOutput {
  private let file: Descriptor
  private var digest: MessageDigest? = MessageDigest(.sha3x384)
  /// The number of bytes written.
  private(set) var size: UInt64 = 0

  static let action = "write the snapshot of snapd"

  init() throws(InterchangeError) {
    do throws(SystemError) { file = try TemporaryFile.make() } catch {
      throw InterchangeError(error, Self.action, subject: "the temporary file")
    }
  }

  /// Appends bytes.
  func write(_ bytes: Span<UInt8>) throws(InterchangeError) {
    do throws(SystemError) { try file.write(bytes) } catch { throw failure(error) }
    digest?.update(bytes)
    size += UInt64(bytes.count)
  }

  /// Returns the SHA3-384 of all bytes; nothing can be written after that.
  func finish() -> [UInt8] {
    guard let complete = digest.take() else { return [] }
    return complete.finish()
  }

  /// Passes all bytes on.
  func forEachPortion(
    _ body: (Span<UInt8>) throws(InterchangeError) -> Void
  ) throws(InterchangeError) {
    var (buffer, offset): ([UInt8], UInt64) = ([], 0)
    while offset < size {
      do throws(SystemError) {
        try file.read(count: 1 << 18, at: offset, into: &buffer)
      } catch { throw failure(error) }
      guard !buffer.isEmpty else { return }
      try body(buffer.span)
      offset += UInt64(buffer.count)
    }
  }

  private func failure(_ error: SystemError) -> InterchangeError {
    TemporaryFile.failure(error, Self.action, subject: "the temporary file")
  }
}
