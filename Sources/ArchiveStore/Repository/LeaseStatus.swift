internal import Codecs
public import SystemIO

/// A lease as other programs see it: a program that changes the repository, or reads much of it.
public struct LeaseStatus: Sendable, Hashable {
  /// The name of the lease's directory.
  public let name: ByteString
  /// The time of the last heartbeat by the storage's clock, or nil before the first one.
  public let heartbeat: Timestamp?
  /// The time at which the program began, by the storage's clock, or nil if it recorded none.
  let began: Timestamp?
  /// The host and the process ID of the program, or nil if it recorded none.
  public let host: String?
  public let process: Int32?
  /// The mark that shows whether the program still runs; nil if it has none.
  private let mark: ProcessMark?
  /// Whether the program only reads.
  public let isReader: Bool
  /// Whether the program holds the right to remove objects.
  public let removesObjects: Bool
  /// The ids of the condemned objects that the program has seen.
  let seen: Set<Digest>
  /// The place among the programs that copy snapshots into the repository; nil if it is not one.
  let copyPlace: CopyTurn.Place?

  /// Whether the program wrote no heartbeat for an hour. A prune decides by the storage's clock.
  func isExpired(at now: Timestamp) -> Bool {
    heartbeat.map { now.since($0) > Lease.patience } ?? false
  }

  /// Whether the program still runs, as far as this host can find out: only a program of the same
  /// host and container can. For messages, for the right to remove objects, whose lease is taken
  /// away, and for turns to save copies: a prune decides by heartbeats which leases it waits for.
  public var presence: Processes.Presence {
    guard let process, let mark else { return .unknown }
    return mark.presence(of: process)
  }

  /// The time by the storage's clock after which a prune removes the lease, unless the program
  /// writes another heartbeat; nil before the first one.
  public var expiry: Timestamp? {
    heartbeat.map {
      Timestamp(seconds: $0.seconds + Int64(Lease.patience), nanoseconds: $0.nanoseconds)
    }
  }

  /// The process, the host and the start of the program in parentheses, to append to a message;
  /// empty if it did not name itself.
  public var words: String {
    guard let process, let host else { return "" }
    let start = began.map { ", since \(Timestamp(seconds: $0.seconds, nanoseconds: 0).rfc3339)" }
    return " (process \(process) on host '\(ByteString(host))'\(start ?? ""))"
  }

  /// Whether the program is known to have ended, and its last heartbeat is so old that none of its
  /// requests is still on its way to the store and no clone of a virtual machine still runs it: in
  /// a store without rename, such a request could not be stopped by taking the lease away.
  func hasEnded(before now: Timestamp) -> Bool {
    guard presence == .ended, let heartbeat else { return false }
    return now.since(heartbeat) > Self.settlingTime
  }

  /// The seconds after a heartbeat in which a request of an ended program may be on its way.
  static let settlingTime = 300.0

  /// Creates the status of a lease with the names of its empty files.
  init(
    name: ByteString, signs: [ByteString], heartbeat: Timestamp?, began: Timestamp?,
    removesObjects: Bool
  ) {
    (self.name, self.heartbeat, self.began) = (name, heartbeat, began)
    self.removesObjects = removesObjects
    let owner = signs.lazy.compactMap { Owner($0) }.first
    (host, process, mark) = (owner?.host, owner?.process, owner?.mark)
    isReader = signs.contains(Lease.readerSign)
    copyPlace = CopyTurn.place(in: signs)
    seen = Set(
      signs.compactMap { sign in
        sign.utf8.flatMap {
          $0.hasPrefix(Lease.seenPrefix) ? Digest(hex: $0.dropFirst(Lease.seenPrefix.count)) : nil
        }
      })
  }

  /// Returns the leases of a repository, ordered by name. A lease that is removed meanwhile, or was
  /// taken away from its program, may be missing.
  static func all(_ storage: RepositoryStorage) throws(StoreError) -> [LeaseStatus] {
    try storage.leases.statuses()
  }

  /// The host and process in the name of an empty file, `by-<process>-<host>~<mark>`, for people.
  /// The file is created with the lease and never touched again, so its time is that at which the
  /// program began.
  struct Owner {
    let host: String
    let process: Int32
    /// The mark, which programs of other versions may not write.
    let mark: ProcessMark?

    /// The beginning of the file's name.
    static let prefix = "by-"
    /// The maximum length of a host name in the file's name.
    private static let longest = 200

    /// The file name for this process.
    static let sign: ByteString = {
      let host = String(Host.name.prefix(longest).map { $0 == "/" ? "_" : $0 })
      let mark = ProcessMark.own.map { "~\($0.text)" } ?? ""
      return ByteString("\(prefix)\(Host.processID)-\(host)\(mark)")
    }()

    init?(_ sign: ByteString) {
      guard let text = sign.utf8, text.hasPrefix(Self.prefix) else { return nil }
      let parts = text.dropFirst(Self.prefix.count).split(separator: "-", maxSplits: 1)
      guard parts.count == 2, let process = Int32(parts[0]) else { return nil }
      self.process = process
      let words = parts[1].split(separator: "~", omittingEmptySubsequences: false)
      mark = words.count > 1 ? words.last.flatMap { ProcessMark($0) } : nil
      host = mark == nil ? String(parts[1]) : words.dropLast().joined(separator: "~")
    }
  }
}

extension Repository {
  /// Returns the leases of all programs that are using the repository, ordered by name.
  public func leases() throws(StoreError) -> [LeaseStatus] { try LeaseStatus.all(storage) }
}
