internal import SandboxModel
internal import SystemIO

/// A program in an archive, of which some bytes are wanted here and there.
///
/// It is unpacked into nothing, forwards, and from the start again where the bytes lie behind; that
/// so often only as programs need. Nothing is written, and little is held.
final class PackedProgram: ByteSource {
  private let zip: ZipFile
  private let index: Int
  private let size: UInt64
  private var stream: ZipStream?
  private var position: UInt64 = 0
  private var starts = 0
  /// Why it could not be read on; then it ends there.
  private(set) var failure: ModelError?

  /// A program is read from its start: the head, the commands, the signature, and the section that
  /// lies before it; a universal one that for some slices.
  private static let maximumStarts = 12

  init(_ zip: ZipFile, _ index: Int) {
    self.zip = zip
    self.index = index
    size = zip.entries[index].size
  }

  func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
    guard failure == nil, offset < size else { return [] }
    do throws(ModelError) {
      return try bytes(Int(min(UInt64(count), size - offset)), at: offset)
    } catch {
      failure = error
      return []
    }
  }

  private func bytes(_ count: Int, at offset: UInt64) throws(ModelError) -> [UInt8] {
    let stream = try stream(for: offset)
    while position < offset {
      var passed = [UInt8](repeating: 0, count: Int(min(offset - position, 256 << 10)))
      position += UInt64(try stream.read(into: &passed))
    }
    var bytes = [UInt8](repeating: 0, count: count)
    let filled = try stream.read(into: &bytes)
    position += UInt64(filled)
    bytes.removeLast(count - filled)
    return bytes
  }

  private func stream(for offset: UInt64) throws(ModelError) -> ZipStream {
    if let stream, offset >= position { return stream }
    starts += 1
    guard starts <= Self.maximumStarts else {
      throw zip.fault.damaged(
        "its program '\(zip.entries[index].path)' is not made as programs are")
    }
    let new = try ZipStream(zip)
    try new.go(to: index)
    stream = new
    position = 0
    return new
  }
}
