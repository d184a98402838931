internal import Codecs
internal import Synchronization

/// The packs of a delivery of which nothing can be read. Their used blobs are looked for in other
/// packs at its end.
///
/// Finding the blobs of a pack scans the tables of the index. All packs together need one scan, or
/// one for each million blobs, which bounds the memory. Safe to use from any thread.
final class UnreadablePacks: Sendable {
  /// A pack, and the reason why it cannot be read.
  struct Pack: Sendable {
    let pack: PrunePlan.Pack
    let error: StoreError
  }

  private let found = Mutex<[Pack]>([])
  private let passed = Mutex<Set<Digest>>([])
  private let limit: Int

  /// - Parameter limit: the number of blobs of one scan, unless a single pack has more.
  init(blobsOfScan limit: Int = 1 << 20) { self.limit = limit }

  /// Adds a pack.
  func add(_ pack: PrunePlan.Pack, _ error: StoreError) {
    found.withLock { $0.append(Pack(pack: pack, error: error)) }
  }

  /// Whether there are none.
  var isEmpty: Bool { found.withLock { $0.isEmpty } }

  /// Calls `body` with each pack and its blobs, ordered by id. Returns false if it was interrupted:
  /// `isStopping` is called before each pack.
  ///
  /// - Parameter find: returns the used blobs of some packs with one scan.
  func forEach(
    findingBlobs find: (Set<Digest>) -> [Digest: [BlobRecord]], isStopping: () -> Bool,
    _ body: (Pack, [BlobRecord]) throws(StoreError) -> Void
  ) throws(StoreError) -> Bool {
    for part in parts() {
      if isStopping() { return false }
      var blobs = find(Set(part.map(\.pack.id)))
      for pack in part {
        if isStopping() { return false }
        try body(pack, blobs.removeValue(forKey: pack.pack.id) ?? [])
        passed.withLock { _ = $0.insert(pack.pack.id) }
      }
    }
    return true
  }

  /// The errors of the packs that were not passed on because of an interruption, ordered by id. A
  /// missing pack is not damage: a prune removed it, and other packs may have its blobs.
  var leftDamage: [StoreError] {
    let passed = passed.withLock { $0 }
    let left = found.withLock { $0 }.filter { !passed.contains($0.pack.id) }
    return left.filter { $0.error.code != .missing }.sorted { $0.pack.id < $1.pack.id }.map(\.error)
  }

  /// Divides the packs into groups of one scan each.
  private func parts() -> [[Pack]] {
    var parts: [[Pack]] = []
    var blobs = 0
    for pack in found.withLock({ $0 }).sorted(by: { $0.pack.id < $1.pack.id }) {
      blobs += pack.pack.usedBlobs
      if parts.isEmpty || blobs > limit {
        parts.append([])
        blobs = pack.pack.usedBlobs
      }
      parts[parts.count - 1].append(pack)
    }
    return parts
  }
}

extension UsedBlobSearch {
  /// Returns the marked blobs of packs in the order of their frames. Scans the tables of the index
  /// once.
  func blobs(in packs: Set<Digest>) -> [Digest: [BlobRecord]] {
    var blobs: [Digest: [BlobRecord]] = [:]
    for (number, object) in index.objects.enumerated() {
      let wanted = (0..<object.packs).map { packs.contains(object.pack($0).id) }
      guard wanted.contains(true) else { continue }
      for entry in 0..<object.blobs where used.contains(entry, of: number) {
        guard let record = object.record(entry), wanted[Int(record.pack)] else { continue }
        blobs[object.pack(Int(record.pack)).id, default: []].append(record)
      }
    }
    return blobs.mapValues { $0.sorted { ($0.frame, $0.offset) < ($1.frame, $1.offset) } }
  }
}
