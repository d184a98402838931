internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// An executable in an archive, of which only some parts are read.
///
/// It is decompressed from the start, without storing the result. Reading backwards restarts at the
/// beginning; the number of restarts is limited to what executables require. Nothing is written,
/// and memory use is small.
final class ArchivedExecutable: ByteSource {
  private let zip: ZipFile
  private let index: Int
  private let size: UInt64
  private var stream: ZipStream?
  private var position: UInt64 = 0
  private var starts = 0
  /// The error that ended reading.
  private(set) var failure: ModelError?

  /// The maximum number of restarts. Each slice requires the header, the commands, the signature,
  /// and the section before it; a universal executable has several slices.
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
        "its executable '\(zip.entries[index].path)' has an invalid structure")
    }
    let new = try ZipStream(zip)
    try new.go(to: index)
    stream = new
    position = 0
    return new
  }
}
