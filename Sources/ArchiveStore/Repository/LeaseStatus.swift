internal import Codecs
public import SystemIO

/// A lease as other programs see it: a program that changes the repository, or reads much of it.
public struct LeaseStatus: Sendable, Hashable {
  /// The name of the lease's directory.
  public let name: ByteString
  /// The time of the last heartbeat by the storage's clock, or nil before the first one.
  public let heartbeat: Timestamp?
  /// The time at which the program began, by the storage's clock, or nil if it did not name itself.
  let began: Timestamp?
  /// The host and the process ID of the program, or nil if it did not name them.
  public let host: String?
  public let process: Int32?
  /// Whether the program only reads.
  public let isReader: Bool
  /// Whether the program holds the right to remove objects.
  public let removesObjects: Bool
  /// The ids of the condemned objects that the program has seen.
  let seen: Set<Digest>

  /// Whether the program wrote no heartbeat for an hour. A prune decides by the storage's clock.
  func isExpired(at now: Timestamp) -> Bool {
    heartbeat.map { now.since($0) > Lease.patience } ?? false
  }

  private static let seenPrefix = "seen-"

  /// Creates the status of a lease with the names of its empty files.
  init(
    name: ByteString, signs: [ByteString], heartbeat: Timestamp?, began: Timestamp?,
    removesObjects: Bool
  ) {
    (self.name, self.heartbeat, self.began) = (name, heartbeat, began)
    self.removesObjects = removesObjects
    let owner = signs.lazy.compactMap { Owner($0) }.first
    (host, process) = (owner?.host, owner?.process)
    isReader = signs.contains(Lease.readerSign)
    seen = Set(
      signs.compactMap { sign in
        sign.utf8.flatMap {
          $0.hasPrefix(Self.seenPrefix) ? Digest(hex: $0.dropFirst(Self.seenPrefix.count)) : nil
        }
      })
  }

  /// Returns the leases of a repository, ordered by name. A lease that is removed meanwhile may be
  /// missing, and so is one that was taken away from its program.
  static func all(_ storage: RepositoryStorage) throws(StoreError) -> [LeaseStatus] {
    try storage.leases.statuses()
  }

  /// The host and process in the name of an empty file, `by-<process>-<host>`, for people. The file
  /// is created with the lease and never touched again, so its time is that at which the program
  /// began.
  struct Owner {
    let host: String
    let process: Int32

    private static let prefix = "by-"
    /// The maximum length of a host name in the file's name.
    private static let longest = 200

    /// The file name for this process.
    static var sign: ByteString {
      let host = String(Host.name.prefix(longest).map { $0 == "/" ? "_" : $0 })
      return ByteString("\(prefix)\(Host.processID)-\(host)")
    }

    init?(_ sign: ByteString) {
      guard let text = sign.utf8, text.hasPrefix(Self.prefix) else { return nil }
      let parts = text.dropFirst(3).split(separator: "-", maxSplits: 1)
      guard parts.count == 2, let process = Int32(parts[0]) else { return nil }
      (self.process, host) = (process, String(parts[1]))
    }
  }
}

extension Repository {
  /// Returns the leases of all programs that are using the repository, ordered by name.
  public func leases() throws(StoreError) -> [LeaseStatus] { try LeaseStatus.all(storage) }
}
