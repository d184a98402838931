internal import Codecs
internal import Synchronization

extension PackFrame {
  /// A full frame before compression: complete tar members with the locations of their blobs.
  struct Plain: Sendable {
    var bytes: [UInt8]
    var blobs: [PackFrame.Blob]
    /// Whether all members belong to one file: a single member, or parts.
    var isOneFile: Bool

    /// Appends the members of another frame.
    mutating func append(_ other: PackFrame.Plain) {
      let start = bytes.count
      bytes.append(contentsOf: other.bytes)
      isOneFile = false
      blobs += other.blobs.map {
        PackFrame.Blob(id: $0.id, offset: start + $0.offset, length: $0.length)
      }
    }
  }
}

/// A finished frame: complete tar members, compressed and verified, with the locations of their
/// blobs.
struct PackFrame: Sendable {
  let stored: [UInt8]
  let plain: Int
  let blobs: [Blob]

  /// A blob's location in the decoded bytes of a frame or of a member.
  struct Blob: Hashable, Sendable {
    let id: BlobID
    let offset: Int
    let length: Int
  }
}

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
  /// The maximum size in bytes of a file that is stored as one member.
  static let memberLimit = 8 << 20
  /// The sizes of buffers for a frame of contents: of either kind, or of one large member.
  static let bufferSizes = [
    noiseLimit, dataLimit + (64 << 10), memberLimit + (64 << 10),
  ]

  private let limit: Int
  private let buffers: BufferPool?
  private var tar: TarWriter
  private var plain: [UInt8] = []
  private var blobs: [PackFrame.Blob] = []
  /// The name of the first member, and whether all others are parts of the same file.
  private var firstName: [UInt8] = []
  private var isOneFile = true

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
  ) throws(StoreError) -> PackFrame.Plain? {
    let isFull = !plain.isEmpty && plain.count + member.encodedSize > limit
    let frame = isFull ? finish() : nil
    if plain.isEmpty {
      (firstName, isOneFile) = (member.path, true)
      if let buffers { plain = buffers.acquire(max(limit, member.encodedSize)) }
    } else if isOneFile {
      isOneFile = PackMembers.arePartsOfOneFile(firstName.span, member.path.span)
    }
    let start: Int
    do {
      start = try tar.append(member, content: bytes, to: &plain)
    } catch { throw .codec(error, "a pack") }
    for blob in more {
      blobs.append(PackFrame.Blob(id: blob.id, offset: start + blob.offset, length: blob.length))
    }
    return frame
  }

  /// Closes the frame, optionally with the blocks that end an archive. Returns nil if it has no
  /// member.
  mutating func finish(withEnd hasEnd: Bool = false) -> PackFrame.Plain? {
    if plain.isEmpty { return nil }
    if hasEnd { TarWriter.appendEnd(to: &plain) }
    let frame = PackFrame.Plain(bytes: plain, blobs: blobs, isOneFile: isOneFile)
    plain = []
    blobs.removeAll(keepingCapacity: true)
    return frame
  }
}

/// Reusable buffers for frames. A new buffer of 4 MiB costs about a thousand page faults.
final class BufferPool: Sendable {
  /// The capacities of the buffers, the smallest first.
  private let sizes: [Int]
  /// The maximum total capacity of unused buffers, in bytes.
  private let capacity: Int
  private let state: Mutex<State>

  private struct State {
    /// The unused buffers of each size.
    var buffers: [[[UInt8]]]
    /// The total capacity of the unused buffers.
    var kept = 0

    mutating func remove(_ number: Int) -> [UInt8]? {
      guard let buffer = buffers[number].popLast() else { return nil }
      kept -= buffer.capacity
      return buffer
    }

    /// Keeps a buffer and, if necessary, drops unused buffers of other sizes, which earlier content
    /// needed.
    mutating func insert(_ buffer: [UInt8], _ number: Int, atMost capacity: Int) {
      let room = buffer.capacity
      for other in buffers.indices.reversed() where other != number {
        while kept + room > capacity, remove(other) != nil {}
      }
      guard kept + room <= capacity else { return }
      kept += room
      buffers[number].append(buffer)
    }
  }

  /// Creates a pool that keeps at most `capacity` bytes of unused buffers.
  init(sizes: [Int], capacity: Int) {
    self.sizes = sizes.sorted()
    self.capacity = capacity
    state = Mutex(State(buffers: [[[UInt8]]](repeating: [], count: sizes.count)))
  }

  /// The total capacity of the unused buffers, in bytes.
  var keptBytes: Int { state.withLock { $0.kept } }

  /// Returns an empty buffer with a capacity of at least `count` bytes.
  func acquire(_ count: Int) -> [UInt8] {
    let number = sizes.firstIndex { $0 >= count }
    if let number, let buffer = state.withLock({ $0.remove(number) }) { return buffer }
    var buffer: [UInt8] = []
    buffer.reserveCapacity(number.map { sizes[$0] } ?? count)
    return buffer
  }

  /// Returns a buffer to the pool. The caller must hold the only reference, otherwise the buffer is
  /// copied. A buffer that has grown to twice the largest size or more is dropped.
  func release(_ buffer: consuming [UInt8]) {
    let room = buffer.capacity
    guard let number = sizes.lastIndex(where: { $0 <= room }), room < 2 * sizes[sizes.count - 1]
    else { return }
    buffer.removeAll(keepingCapacity: true)
    let empty = buffer
    state.withLock { $0.insert(empty, number, atMost: capacity) }
  }
}
