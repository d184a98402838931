internal import ArchiveStore
internal import Codecs
internal import RemoteStorage
internal import SystemIO

/// The record, in a file of the user's data directory, that this host made a mirror in a place.
///
/// If the place is later empty, the mirror's disk is probably not mounted. A new mirror would then
/// fill the disk that contains the mount point, and nobody would notice that the real mirror is out
/// of date.
struct MirrorRecord {
  /// The files of a mirror; nil without a data directory.
  private let directory: ByteString?
  private let place: String
  private let location: ByteString

  init(of mirror: RepositoryOptions.Choice) {
    directory = Host.dataDirectory?.appending("sandboxctl/mirrors")
    place = Blake2b.hash(Array(mirror.recordedLocation.text.bytes)).hex
    location = mirror.location.text
  }

  /// The lock of the mirror.
  var lock: ByteString? { directory?.appending(ByteString(place + ".lock")) }

  private var name: ByteString { ByteString(place + ".made") }

  /// Whether this host made a mirror in the place.
  var exists: Bool {
    guard let directory, let records = try? Directory.open(path: directory) else { return false }
    return (try? records.status(name)) != nil
  }

  /// Checks that the place is not empty.
  ///
  /// - Parameter storage: the storage in the place; nil if there is none.
  /// - Throws: `noRepository`.
  func requirePresent(in storage: (any Storage)?) throws {
    if let storage, try !storage.list(.root).isEmpty { return }
    throw StoreError(
      .noRepository, "mirror the repository to", subject: location.description,
      reason: "the mirror that this host made there is gone",
      hint: "mount its disk; '--allow-new' makes a new mirror there")
  }

  /// Records the mirror. Without a record, only the check of the place is omitted.
  func save() {
    guard let directory else { return }
    _ = try? Directory.make(path: directory, permissions: 0o700).openOrCreate(name)
  }
}
