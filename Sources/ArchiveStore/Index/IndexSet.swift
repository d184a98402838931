internal import Codecs

/// Several index objects searched as one.
///
/// A writer relies on a blob only where its pack is in the writer's own listing and not condemned:
/// it says which packs those are. A reader takes every place that an index names.
struct IndexSet: Sendable {
  /// Where a blob lies, with all that is needed to read it.
  struct Found: Hashable, Sendable {
    let pack: Digest
    let frame: FramePlace
    let frameNumber: Int
    let offset: Int
    let length: Int
  }

  private var objects: [IndexObject]
  /// For each object, which of its packs may be relied on; empty: all.
  private var usable: [[Bool]]

  /// Searches all packs.
  init(_ objects: [IndexObject]) {
    self.objects = objects
    usable = []
  }

  /// Searches only packs that `isUsable`.
  init(_ objects: [IndexObject], relyingOn isUsable: (Digest) -> Bool) {
    self.objects = objects
    usable = objects.map { object in (0..<object.packs).map { isUsable(object.pack($0).id) } }
  }

  /// Adds an object, all of whose packs may be relied on.
  mutating func add(_ object: IndexObject) {
    if usable.count == objects.count {
      usable.append([Bool](repeating: true, count: object.packs))
    }
    objects.append(object)
  }

  /// The packs that may be relied on.
  var packs: Set<Digest> {
    var packs: Set<Digest> = []
    for (number, object) in objects.enumerated() {
      for pack in 0..<object.packs where usable.isEmpty || usable[number][pack] {
        packs.insert(object.pack(pack).id)
      }
    }
    return packs
  }

  /// How many entries there are in all objects.
  var blobs: Int { objects.reduce(0) { $0 + $1.blobs } }

  /// Whether a blob lies in a pack that may be relied on.
  func contains(_ blob: BlobID) -> Bool { first(blob) != nil }

  /// Finds a blob.
  func find(_ blob: BlobID) -> Found? {
    guard let (object, record) = first(blob) else { return nil }
    let pack = object.pack(Int(record.pack))
    return Found(
      pack: pack.id, frame: object.frame(pack.firstFrame + Int(record.frame)),
      frameNumber: Int(record.frame), offset: Int(record.offset), length: Int(record.length))
  }

  private func first(_ blob: BlobID) -> (IndexObject, BlobRecord)? {
    for (number, object) in objects.enumerated() {
      guard let record = object.find(blob) else { continue }
      if usable.isEmpty || usable[number][Int(record.pack)] { return (object, record) }
    }
    return nil
  }
}
