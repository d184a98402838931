internal import Codecs
public import SystemIO

/// The progress of checks that each read a fraction of the packs, so that together they read all.
///
/// A round reads the packs in the order of their ids, which are hashes. Each check reads the same
/// share of the remaining bytes as its fraction is of the remaining round: with a fraction f, all
/// packs that exist from the first to the last check of a round are read within 1/f checks, rounded
/// up, whatever packs are added or removed meanwhile.
struct CheckRound: Hashable, Sendable {
  /// The pack that was read last, in the order of ids; nil at the beginning of a round.
  private(set) var last: Digest?
  /// The part of the round that remains, above 0 to 1.
  private(set) var remaining = 1.0

  /// Creates the beginning of a round.
  init() {}

  /// Returns the packs that the next check reads, at least one if there are any. A fraction of 1
  /// reads all.
  ///
  /// - Parameter fraction: above 0, at most 1.
  mutating func next(_ fraction: Double, of packs: [Digest: UInt64]) -> [Digest: UInt64] {
    var ahead = packs.filter { pack in last.map { $0 < pack.key } ?? true }
    if ahead.isEmpty || fraction >= 1 { (self, ahead) = (CheckRound(), packs) }
    let isLast = fraction >= remaining - Self.rounding
    let wanted = Double(ahead.values.clampedSum) * (isLast ? 1 : fraction / remaining)
    var taken: [Digest: UInt64] = [:]
    var sum = 0.0
    for (pack, size) in ahead.sorted(by: { $0.key < $1.key }) where isLast || sum < wanted {
      taken[pack] = size
      sum += Double(size)
      last = pack
    }
    remaining -= fraction
    if isLast || taken.count == ahead.count { self = CheckRound() }
    return taken
  }

  /// The tolerance for sums of fractions.
  private static let rounding = 1e-9
}

/// This host's file with the progress of partial checks of a repository.
public struct CheckRoundFile: Sendable {
  private let file: CacheFile
  private static let limit = 4096

  /// The name of the file.
  public static let fileName: ByteString = "check-round"

  /// Uses a directory for one repository, and creates it with its parents if it is missing. A
  /// directory that other users can write to is not used.
  public init(directory: ByteString) {
    file = CacheFile(directory: directory, name: Self.fileName)
  }

  /// Reads the progress. Returns the beginning of a round if there is no usable file.
  func load() -> CheckRound {
    guard let bytes = file.load(limit: Self.limit) else { return CheckRound() }
    return CheckRound(decoding: bytes) ?? CheckRound()
  }

  /// Replaces the file. If that fails, the same packs are read again next time.
  @discardableResult
  func save(_ round: CheckRound) -> Bool { file.save(round.encode()) }
}

extension CheckRound {
  func encode() -> [UInt8] {
    let json: JSON = [
      "version": 1, "last": last.map { .string($0.hex) } ?? .null,
      "remaining": .double(remaining),
    ]
    return json.line
  }

  /// Returns nil if the text is not that of a round.
  init?(decoding bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes), json["version"]?.integer == 1,
      let remaining = json["remaining"]?.double, remaining > 0, remaining <= 1
    else { return nil }
    self.remaining = remaining
    guard let text = json["last"]?.string else { return }
    guard let last = Digest(hex: text) else { return nil }
    self.last = last
  }
}
