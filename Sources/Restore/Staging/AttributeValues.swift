internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

/// The values of extended attributes that are blobs, taken from the frames that are decoded for the
/// contents of files. Otherwise each would be read later: its frame would be decoded again and, for
/// a remote repository, downloaded again. Safe to use from any thread.
///
/// Values beyond `limit` are not held: they are read when they are set.
final class AttributeValues: Sendable {
  /// The maximum size of all held values in bytes.
  static let limit: UInt64 = 4 << 20

  private let values = Mutex<[Digest: [UInt8]]>([:])
  /// The number that identifies these values in deliveries; no entry has it.
  let item: UInt32

  /// Creates an empty collection for a tree.
  init(besides tree: PlannedTree) { item = UInt32(clamping: tree.entries.count) }

  /// Returns the uses of the values that the entries need, each blob once.
  func uses(
    of tree: PlannedTree, where isNeeded: (Int) -> Bool
  ) -> [BlobDelivery.Use] {
    var (uses, known, size) = ([BlobDelivery.Use](), Set<Digest>(), UInt64(0))
    for number in tree.entries.indices where tree.entries[number].detail != nil {
      for attribute in tree.detail(number).attributes {
        guard case .blob(let digest, let length) = attribute.value, length <= Self.limit - size,
          !known.contains(digest), isNeeded(number)
        else { continue }
        known.insert(digest)
        uses.append(
          BlobDelivery.Use(
            digest: digest, length: UInt32(clamping: length), item: item, offset: size))
        size += length
      }
    }
    return uses
  }

  /// Holds delivered values. One that is damaged or missing is read again later, which reports it.
  func hold(_ blobs: ArraySlice<BlobDelivery.Blob>, of frame: [UInt8]) {
    for blob in blobs {
      guard let range = blob.range else { continue }
      values.withLock { $0[blob.use.digest] = Array(frame[range]) }
    }
  }

  /// Returns the value of an attribute, or nil if it is not held.
  func value(of attribute: Attribute) -> [UInt8]? {
    guard case .blob(let digest, let length) = attribute.value,
      let value = values.withLock({ $0[digest] }), value.count == length
    else { return nil }
    return value
  }
}
