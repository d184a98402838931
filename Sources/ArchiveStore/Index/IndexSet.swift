internal import Codecs

/// Several index objects searched as one.
///
/// A writer relies on a blob only if its pack is in the writer's own listing and not condemned, and
/// passes the usable packs. A reader uses every location that an index names.
struct IndexSet: Sendable {
  /// The location of a blob, complete enough to read it.
  struct BlobLocation: Hashable, Sendable {
    let pack: Digest
    let frame: FrameLocation
    let frameNumber: Int
    let offset: Int
    let length: Int
  }

  private(set) var objects: [IndexObject]
  /// For each object, whether each of its packs may be relied on; empty if all may.
  private var usable: [[Bool]]

  /// Searches all packs.
  init(_ objects: [IndexObject]) {
    self.objects = objects
    usable = []
  }

  /// Searches only packs for which `isUsable` returns true.
  init(_ objects: [IndexObject], relyingOn isUsable: (Digest) -> Bool) {
    self.objects = objects
    usable = objects.map { object in (0..<object.packs).map { isUsable(object.pack($0).id) } }
  }

  /// Adds an object. All its packs may be relied on.
  mutating func add(_ object: IndexObject) {
    if usable.count == objects.count {
      usable.append([Bool](repeating: true, count: object.packs))
    }
    objects.append(object)
  }

  /// Replaces objects by another one. Packs of it that could be relied on before still can.
  mutating func replace(_ ids: Set<Digest>, by object: IndexObject) {
    let packs = packs
    let kept = objects.indices.filter { !ids.contains(objects[$0].id) }
    self = IndexSet(kept.map { objects[$0] } + [object]) { packs.contains($0) }
  }

  /// The packs that may be relied on.
  var packs: Set<Digest> { Set(packSizes.keys) }

  /// The packs that may be relied on, with their stored sizes.
  var packSizes: [Digest: UInt64] {
    var sizes: [Digest: UInt64] = [:]
    for (number, object) in objects.enumerated() {
      for index in 0..<object.packs where usable.isEmpty || usable[number][index] {
        let pack = object.pack(index)
        sizes[pack.id] = pack.size
      }
    }
    return sizes
  }

  /// The number of entries in all objects.
  var blobs: Int { objects.reduce(0) { $0 + $1.blobs } }

  /// Whether a blob is in a pack that may be relied on.
  func contains(_ blob: BlobID) -> Bool { first(blob) != nil }

  /// Returns the location of a blob, or nil if there is none.
  func find(_ blob: BlobID) -> BlobLocation? { first(blob).map { $0.location(of: $1) } }

  /// Returns all locations of a blob.
  func findAll(_ blob: BlobID) -> [BlobLocation] {
    var found: [BlobLocation] = []
    for (number, object) in objects.enumerated() {
      for record in object.findAll(blob) where isUsable(record, number) {
        found.append(object.location(of: record))
      }
    }
    return found
  }

  private func first(_ blob: BlobID) -> (IndexObject, BlobRecord)? {
    for (number, object) in objects.enumerated() {
      if let record = object.first(blob, where: { isUsable($0, number) }) {
        return (object, record)
      }
    }
    return nil
  }

  private func isUsable(_ record: BlobRecord, _ object: Int) -> Bool {
    usable.isEmpty || usable[object][Int(record.pack)]
  }
}

extension IndexSet {
  /// Returns the frames with trees or lists, by pack and offset, or nil if they are larger than
  /// `limit` stored bytes.
  func treeFrames(limit: UInt64) -> [(pack: Digest, content: Range<UInt64>)]? {
    var (found, size) = ([(pack: Digest, content: Range<UInt64>)](), UInt64(0))
    for (number, object) in objects.enumerated() {
      let frames = object.frames(of: [.tree, .list], limit: limit - size) { isUsable($0, number) }
      guard let frames else { return nil }
      for (pack, frame) in frames {
        found.append((pack, frame.range))
        size += UInt64(frame.stored)
      }
    }
    return found
  }
}

extension IndexObject {
  /// Returns the frames with selected blobs of some kinds, by pack and number, or nil if they are
  /// larger than `limit` stored bytes.
  fileprivate func frames(
    of kinds: [BlobKind], limit: UInt64, where isSelected: (BlobRecord) -> Bool
  ) -> [(pack: Digest, frame: FrameLocation)]? {
    var (frames, size) = ([UInt64: (pack: Digest, frame: FrameLocation)](), UInt64(0))
    for kind in kinds {
      let first = layout.firstBlob(of: kind)
      for number in first..<(first + layout.blobsByKind[Int(kind.rawValue)]) {
        guard let record = record(number), isSelected(record) else { continue }
        let key = UInt64(record.pack) << 16 | UInt64(record.frame)
        guard frames[key] == nil, bytes.withBytes({ layout.fitsFrame(record, $0) }) else {
          continue
        }
        let place = location(of: record)
        frames[key] = (place.pack, place.frame)
        size += UInt64(place.frame.stored)
        if size > limit { return nil }
      }
    }
    return frames.sorted { $0.key < $1.key }.map(\.value)
  }

  fileprivate func location(of record: BlobRecord) -> IndexSet.BlobLocation {
    let pack = pack(Int(record.pack))
    return IndexSet.BlobLocation(
      pack: pack.id, frame: frame(pack.firstFrame + Int(record.frame)),
      frameNumber: Int(record.frame), offset: Int(record.offset), length: Int(record.length))
  }
}
