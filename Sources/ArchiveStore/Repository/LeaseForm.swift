internal import Codecs
internal import SystemIO

/// The form of leases, of the right to remove objects and of the commit of a snapshot in a kind of
/// store (docs/repository-format.md, "Leases" and "Stores without rename").
///
/// With rename, a lease is a directory. Another program takes it away by renaming it, and its
/// program can then change nothing more. Without rename, a lease is a prefix that another program
/// marks as dead, and its program looks for the mark after it has put a snapshot.
protocol LeaseForm: Sendable {
  /// The number of packs that are removed at a time.
  var removalBatch: Int { get }

  /// Whether a program that only reads may take a lease: it creates no directory for it.
  func mayTakeReaderLease() -> Bool

  /// Prepares a new lease of a path, before its first signs.
  func make(_ lease: ObjectPath) throws(StoreError)

  /// The signs that a new lease gets, in this order.
  var firstSigns: [ByteString] { get }

  /// Whether a program has to ask the store whether another one took its lease away. With rename it
  /// need not ask: its next commit fails.
  func isDead(_ lease: ObjectPath) throws(StoreError) -> Bool

  /// Saves an object through a lease. `renew` is called if the lease was marked as dead before: it
  /// takes a new one and checks that everything that the object names is there, or throws.
  func save(
    _ bytes: [UInt8], as object: ObjectPath, by lease: Lease, renew: () throws(StoreError) -> Void
  ) throws(StoreError)

  /// Saves a snapshot whose content is durable. `renew` is called if the lease was marked as dead:
  /// it takes a new one and checks that everything that the snapshot needs is there, or throws.
  func commit(
    _ snapshot: EncodedObject, by lease: Lease, renew: () throws(StoreError) -> Void
  ) throws(StoreError)

  /// Takes an object away, so that it can be put back. Returns nil if it is already gone.
  func claim(
    _ object: ObjectPath, as name: ByteString, by lease: Lease
  ) throws(StoreError) -> ClaimedObject?

  /// Removes an object through a lease. One that is already gone is ignored.
  func remove(_ object: ObjectPath, by lease: Lease) throws(StoreError)

  /// Removes condemned packs through a lease, at most `removalBatch`. Missing ones are ignored.
  func remove(packs: [ObjectPath], by lease: Lease) throws(StoreError)

  /// Moves an object that no program changes.
  func move(_ object: ObjectPath, to target: ObjectPath, by lease: Lease) throws(StoreError)

  /// Removes a lease, as far as possible.
  ///
  /// - Parameters:
  ///   - signs: the names of the signs that its program has put, if it should contain no other
  ///     objects; nil to look.
  ///   - isSettled: whether the store has answered every request to save something through it, so
  ///     that nothing more can arrive.
  ///   - leftovers: objects elsewhere that are removed with it.
  func release(
    _ lease: ObjectPath, signs: [ByteString]?, isSettled: Bool, with leftovers: [ObjectPath])

  /// Returns the leases of all programs, ordered by name.
  func statuses() throws(StoreError) -> [LeaseStatus]

  /// Takes away the leases of other programs without a heartbeat for an hour of the store's clock,
  /// and what their programs have left.
  func removeExpired(besides lease: Lease) throws(StoreError)

  /// Returns the leases of programs that may still remove condemned packs, although they have lost
  /// the right: as long as there is one, no condemned pack becomes usable again.
  func sleepingRemovers() throws(StoreError) -> [ByteString]

  /// Takes the right to remove objects for the holder of a lease. Returns false if another program
  /// has it. A right whose holder wrote no heartbeat for an hour is taken over, and so is that of a
  /// process of this host that has ended, together with its lease.
  func takeRight(_ lease: Lease) throws(StoreError) -> Bool

  /// Whether the holder of a lease still has the right, whose heartbeat is updated.
  func holdsRight(_ lease: Lease) throws(StoreError) -> Bool

  /// Releases the right of the holder of a lease.
  func releaseRight(_ lease: Lease)

  /// Returns the snapshots that are about to be committed, which count as needed. One that moves
  /// meanwhile is in a listing of snapshots that is made afterwards.
  ///
  /// - Throws: `unsupported` for the work that is named as `action`, if the store must not have
  ///   any.
  func pendingSnapshots(for action: String) throws(StoreError) -> [Digest: ObjectPath]
}

/// An object that was taken away and can be put back.
struct ClaimedObject {
  /// Removes it for good. Anything that cannot be removed is left to the end of the lease.
  let discard: () -> Void
  /// Puts it back under its name.
  let putBack: () throws(StoreError) -> Void
}

extension RepositoryStorage {
  /// The form of leases in this store.
  var leases: any LeaseForm { canRename ? DirectoryLeases(self) : ObjectLeases(self) }
}
