internal import SystemIO

/// The turn of a program that copies into a repository to save its snapshots
/// (docs/repository-format.md, "Copies").
///
/// Two copies of a snapshot have different ids if the repository is encrypted, or if different
/// hosts sign them. So programs that copy the same snapshots at the same time save them one after
/// another, and each first looks for what the others have saved. The order is that of Lamport's
/// bakery: a program shows that it chooses a number, then the number, and waits for all lower ones.
/// The signs are in its lease and are only ever added, so credentials that may not remove objects
/// suffice, and a turn ends with its lease.
struct CopyTurn {
  /// The place of a program among those that copy, as its lease shows it.
  enum Place: Hashable, Sendable {
    /// It has not seen a number yet, or is about to show its own.
    case choosing
    case number(UInt64)
  }

  /// The clock of a wait.
  struct Timing: Sendable {
    /// The seconds of a clock that also runs while the host is suspended.
    var clock: @Sendable () -> Double = Host.bootSeconds
    /// Waits until the next look at the others.
    var pause: @Sendable () -> Void = { Host.pause(seconds: 1) }
    /// The seconds without a heartbeat after which a program counts as ended: it writes one each
    /// minute. If it continues after that, it may save a snapshot twice, which does no harm.
    var patience = 180.0
  }

  private let lease: Lease
  private let timing: Timing
  /// The last heartbeats of the programs that this one waits for, and the times at which each was
  /// first seen.
  private var heartbeats: [ByteString: (last: Timestamp?, seen: Double)] = [:]

  /// - Parameter lease: the lease of a writer.
  init(_ lease: Lease, _ timing: Timing = Timing()) { (self.lease, self.timing) = (lease, timing) }

  /// Waits until no other program that copies is saving snapshots. From then on none begins to, as
  /// long as the lease is held. Returns false if `isStopping` returned true before.
  ///
  /// - Parameter onWait: called before a wait for other programs, with their leases, and again if
  ///   another one is among them later.
  mutating func take(
    isStopping: () -> Bool, onWait: ([LeaseStatus]) -> Void
  ) throws(StoreError) -> Bool {
    try lease.put(signs: [Self.choosing])
    let highest = try others().programs.map(\.number).max() ?? 0
    let own = min(highest + 1, Self.limit - 1)
    try lease.put(signs: [Self.sign(own)])
    var reported: Set<ByteString> = []
    while true {
      let earlier = try programs(before: own)
      if earlier.isEmpty { return true }
      if isStopping() { return false }
      let names = Set(earlier.map(\.name))
      if !names.isSubset(of: reported) { onWait(earlier) }
      reported.formUnion(names)
      timing.pause()
    }
  }

  /// Returns the other programs that have a lower number, or may still choose one, and that have
  /// not ended.
  private mutating func programs(before own: UInt64) throws(StoreError) -> [LeaseStatus] {
    let name = lease.path.name
    let (programs, heartbeat) = try others()
    var earlier: [LeaseStatus] = []
    // All of them, because the time of each counts from the first look at it.
    for (status, number) in programs where number == 0 || (number, status.name) < (own, name) {
      if !hasEnded(status, at: heartbeat) { earlier.append(status) }
    }
    return earlier
  }

  /// Whether the program of a lease has ended, as far as this one can find out.
  ///
  /// - Parameter own: the time of this program's last heartbeat; both times are by the store's
  ///   clock.
  private mutating func hasEnded(_ status: LeaseStatus, at own: Timestamp?) -> Bool {
    if status.presence == .ended { return true }
    // It ended long before this program first looked.
    let limit = timing.patience + Repository.clockTolerance
    if let own, let last = status.heartbeat, own.since(last) >= limit { return true }
    let now = timing.clock()
    guard let known = heartbeats[status.name], known.last == status.heartbeat else {
      heartbeats[status.name] = (status.heartbeat, now)
      return timing.patience <= 0
    }
    return now - known.seen >= timing.patience
  }

  /// Returns the other programs that copy, and their numbers, 0 for one that is choosing; and the
  /// last heartbeat of this program. A user who may not look at the leases waits for none.
  private func others() throws(StoreError) -> (
    programs: [(status: LeaseStatus, number: UInt64)], heartbeat: Timestamp?
  ) {
    let statuses: [LeaseStatus]
    do throws(StoreError) {
      statuses = try LeaseStatus.all(lease.storage)
    } catch {
      guard error.isRefused else { throw error }
      return ([], nil)
    }
    let name = lease.path.name
    var programs: [(status: LeaseStatus, number: UInt64)] = []
    for status in statuses where status.name != name {
      switch status.copyPlace {
      case .choosing: programs.append((status, 0))
      case .number(let number): programs.append((status, number))
      case nil: break
      }
    }
    return (programs, statuses.first { $0.name == name }?.heartbeat)
  }
}

// MARK: - Signs

extension CopyTurn {
  private static let choosing: ByteString = "copy"
  private static let prefix = "copy-"
  /// More than the number of copies that ever wait for one another. Higher numbers are ignored.
  private static let limit: UInt64 = 1 << 32

  private static func sign(_ number: UInt64) -> ByteString { ByteString("\(prefix)\(number)") }

  /// Whether a name in a lease is a sign of a copy.
  static func isSign(_ name: ByteString) -> Bool {
    name == choosing || name.bytes.starts(with: prefix.utf8)
  }

  /// Returns the place that the signs of a lease show, or nil if its program does not copy.
  static func place(in signs: [ByteString]) -> Place? {
    let numbers = signs.compactMap { sign in
      sign.utf8.flatMap { $0.hasPrefix(prefix) ? UInt64($0.dropFirst(prefix.count)) : nil }
    }
    if let number = numbers.filter({ (1..<limit).contains($0) }).min() { return .number(number) }
    return signs.contains(choosing) ? .choosing : nil
  }
}
