internal import Codecs

/// Collects tar members into frames. A frame is closed when the next member would exceed its limit,
/// so a member never crosses frames (docs/repository-format.md, "Pack").
///
/// Each worker has its own builder. It does not compress and does not depend on a pack.
struct FrameBuilder: ~Copyable {
  /// The decoded sizes of a frame of file contents, and of one of trees and lists. A smaller frame
  /// is faster to decode when one directory is read.
  static let dataLimit = 4 << 20
  static let treeLimit = 256 << 10
  /// The decoded size of a frame of incompressible contents, which gain nothing from a larger one.
  static let noiseLimit = 1 << 20
  /// The sizes of buffers for a frame of contents: of either kind, or of one large member.
  static let bufferSizes = [
    noiseLimit, dataLimit + (64 << 10), FileWriter.wholeLimit + (64 << 10),
  ]

  private let limit: Int
  private let buffers: BufferPool?
  private var tar: TarWriter
  private var plain: [UInt8] = []
  private var blobs: [PackFrame.Blob] = []
  private var members = 0

  /// Takes the buffers of the frames from `buffers`. The consumer of a frame returns its buffer to
  /// the pool.
  init(limit: Int, buffers: BufferPool? = nil) throws(StoreError) {
    let tar = try StoreError.wrap(coding: "a pack") { () throws(CodecError) in try TarWriter() }
    self.limit = limit
    self.buffers = buffers
    self.tar = tar
  }

  /// Adds a member with the offsets of its blobs. Returns the frame that was closed before it, or
  /// nil.
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

  /// Closes the frame, optionally with the blocks that end an archive. Returns nil if it has no
  /// member.
  mutating func finish(withEnd hasEnd: Bool = false) -> PlainFrame? {
    if plain.isEmpty { return nil }
    if hasEnd { TarWriter.appendEnd(to: &plain) }
    let frame = PlainFrame(bytes: plain, blobs: blobs, members: members)
    (plain, members) = ([], 0)
    blobs.removeAll(keepingCapacity: true)
    return frame
  }
}
