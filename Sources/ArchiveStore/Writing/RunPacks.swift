internal import Codecs

/// The packs and blobs of one run, which become one index object.
struct RunPacks {
  let storage: any Storage
  let lease: Lease
  var blobs = RunBlobs()
  /// Packs by their number; nothing where a pack is still open.
  private var finished: [IndexBuilder.Pack?] = []
  private(set) var storedBytes: UInt64 = 0

  init(storage: any Storage, lease: Lease) {
    self.storage = storage
    self.lease = lease
  }

  var count: Int { finished.count { $0 != nil } }

  /// Opens the next pack.
  mutating func open() throws(StoreError) -> PackWriter {
    let pack = try PackWriter(number: finished.count, storage: storage, lease: lease)
    finished.append(nil)
    return pack
  }

  /// Makes a pack durable.
  mutating func close(_ pack: PackWriter) throws(StoreError) {
    let done = try pack.close()
    finished[pack.number] = done
    storedBytes += done.size
  }

  /// The index of all that is stored; nothing when there is nothing. All packs must be closed.
  func index() -> [UInt8]? {
    let packs = finished.compactMap { $0 }
    guard !packs.isEmpty, packs.count == finished.count else { return nil }
    return IndexBuilder(packs: packs, records: blobs.records).encode()
  }
}
