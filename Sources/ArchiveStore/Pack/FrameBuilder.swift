internal import Codecs

/// Gathers tar members into frames: a frame closes when the next member would take it past its
/// bound, so a member never crosses frames (docs/repository-format.md, "Pack").
///
/// Each worker has its own; it knows no pack and does not compress.
struct FrameBuilder: ~Copyable {
  /// Plain bytes of a frame of file contents, and of one of trees and lists: a smaller frame is
  /// decoded sooner when one directory is wanted.
  static let dataLimit = 4 << 20
  static let treeLimit = 256 << 10
  /// Of contents that do not compress: there is nothing to gain from larger ones.
  static let noiseLimit = 1 << 20
  /// Of the buffers that hold a frame of contents: of either sort, or of one large member.
  static let bufferSizes = [
    noiseLimit, dataLimit + (64 << 10), FileWriter.wholeLimit + (64 << 10),
  ]

  private let limit: Int
  private let buffers: BufferPool?
  private var tar: TarWriter
  private var plain: [UInt8] = []
  private var blobs: [PackFrame.Blob] = []
  private var members = 0

  /// Takes the frames' buffers from `buffers`; whoever has used a frame gives its buffer back.
  init(limit: Int, buffers: BufferPool? = nil) throws(StoreError) {
    let tar = try StoreError.wrap(coding: "a pack") { () throws(CodecError) in try TarWriter() }
    self.limit = limit
    self.buffers = buffers
    self.tar = tar
  }

  /// Adds a member with its blobs' places in it. Gives the frame that had to close before it.
  mutating func append(
    _ member: TarMember, bytes: Span<UInt8>, blobs more: [PackFrame.Blob]
  ) throws(StoreError) -> PlainFrame? {
    let isFull = !plain.isEmpty && plain.count + member.encodedSize > limit
    let frame = isFull ? finish() : nil
    if plain.isEmpty, let buffers { plain = buffers.take(max(limit, member.encodedSize)) }
    let start: Int
    do {
      start = try tar.append(member, content: bytes, to: &plain)
    } catch { throw .codec(error, "a pack") }
    members += 1
    for blob in more {
      blobs.append(PackFrame.Blob(id: blob.id, offset: start + blob.offset, length: blob.length))
    }
    return frame
  }

  /// Closes the frame, with the blocks that end an archive or without; nothing when no member is
  /// in it.
  mutating func finish(withEnd hasEnd: Bool = false) -> PlainFrame? {
    if plain.isEmpty { return nil }
    if hasEnd { TarWriter.appendEnd(to: &plain) }
    let frame = PlainFrame(bytes: plain, blobs: blobs, members: members)
    (plain, members) = ([], 0)
    blobs.removeAll(keepingCapacity: true)
    return frame
  }
}
