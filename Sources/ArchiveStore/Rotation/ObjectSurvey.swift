internal import Codecs

/// Finds which objects of a repository the newest identity opens, from their heads. Objects that it
/// opens were written after the last rotation, for the current recipients.
struct ObjectSurvey {
  private let storage: RepositoryStorage
  private let newest: AgeIdentity
  private let identities: [AgeIdentity]
  /// The payloads of the objects that the newest identity opens.
  private var current: [Digest: Payload] = [:]

  init(_ storage: RepositoryStorage, newest: AgeIdentity, identities: [AgeIdentity]) {
    (self.storage, self.newest, self.identities) = (storage, newest, identities)
  }

  /// The part of an object that stays when it gets another header: its payload, identified by the
  /// random nonce and by the size including the nonce.
  struct Payload: Hashable, Sendable {
    let nonce: [UInt8]
    let size: UInt64
  }

  /// An object that only an older identity opens.
  struct Older: Sendable {
    let id: Digest
    let path: ObjectPath
    /// The stored size in bytes.
    let size: UInt64
    /// The header and the nonce of the payload.
    let head: [UInt8]
    let payload: Payload

    /// The number of bytes of the header.
    var headerCount: Int { head.count - payload.nonce.count }
  }

  /// The objects of one kind.
  struct Found {
    /// The objects that only an older identity opens, ordered by id.
    var older: [Older] = []
    /// The objects that the newest identity opens, by their payloads.
    var current: [Payload: Digest] = [:]
    /// The errors of objects that no identity opens.
    var unreadable: [(id: Digest, error: StoreError)] = []

    /// The objects that the newest identity does not open, with their bytes.
    var leftCount: Int { older.count + unreadable.count }
  }

  private static let nonceCount = 16

  /// Examines the objects of one kind, given their stored sizes. Objects that no longer exist are
  /// skipped. `checkCancellation` is called before each.
  mutating func look(
    at sizes: [Digest: UInt64], kind: ObjectKind,
    checkCancellation: () throws(StoreError) -> Void
  ) throws(StoreError) -> Found {
    var found = Found()
    for (id, size) in sizes.sorted(by: { $0.key < $1.key }) {
      if let payload = current[id] {
        found.current[payload] = id
        continue
      }
      try checkCancellation()
      do throws(StoreError) {
        try look(at: id, storage.layout.path(id, kind: kind), size: size, &found)
      } catch {
        if error.code == .missing { continue }
        guard error.costsTheObjectAlone else { throw error }
        found.unreadable.append((id, error))
      }
    }
    return found
  }

  private mutating func look(
    at id: Digest, _ path: ObjectPath, size: UInt64, _ found: inout Found
  ) throws(StoreError) {
    let bytes = try ObjectCipher.head(of: path, size: size, in: storage.base)
    do throws(AgeError) {
      let payload = Self.payload(of: try AgeFile(opening: bytes.span, with: [newest]), size: size)
      current[id] = payload
      found.current[payload] = id
      return
    } catch {
      guard error.kind == .noMatch else { throw .age(error, "\(path)") }
    }
    do throws(AgeError) {
      let file = try AgeFile(opening: bytes.span, with: identities)
      found.older.append(
        Older(
          id: id, path: path, size: size, head: file.head,
          payload: Self.payload(of: file, size: size)))
    } catch { throw .age(error, "\(path)") }
  }

  private static func payload(of file: AgeFile, size: UInt64) -> Payload {
    let header = UInt64(file.head.count - nonceCount)
    return Payload(nonce: Array(file.head.suffix(nonceCount)), size: size - min(size, header))
  }
}
