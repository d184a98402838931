internal import Codecs
internal import SystemIO

/// The mark of a program in its lease, by which another program on the same host determines whether
/// it still runs (docs/repository-format.md, "Readers").
struct ProcessMark: Sendable, Hashable {
  /// The first eight bytes of a hash of the source of process numbers (`Processes.numbering`), as
  /// hexadecimal digits: a program on another host, in another container or from before a restart
  /// has a different one.
  private let place: String
  /// The time at which the process started, which distinguishes it from others of the same number.
  private let start: UInt64

  private init(place: String, start: UInt64) { (self.place, self.start) = (place, start) }

  /// The mark of this process, or nil if it cannot be determined.
  static let own: ProcessMark? = {
    guard let ownPlace, let start = Processes.startTime(of: Host.processID) else { return nil }
    return ProcessMark(place: ownPlace, start: start)
  }()

  private static let ownPlace: String? = Processes.numbering().map {
    String(Blake2b.hash(Array($0.utf8)).hex.prefix(placeLength))
  }

  private static let placeLength = 16

  /// The mark in the name of a file.
  var text: String { "\(place)-\(String(start, radix: 16))" }

  /// Reads a mark; returns nil if the text is not one.
  init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    let digits = Set("0123456789abcdef")
    guard parts.count == 2, parts[0].count == Self.placeLength,
      parts[0].allSatisfy(digits.contains),
      parts[1].allSatisfy(digits.contains), let start = UInt64(parts[1], radix: 16)
    else { return nil }
    self.init(place: String(parts[0]), start: start)
  }

  /// Whether the process of this mark still runs, which is unknown for another host or container.
  func presence(of process: Int32) -> Processes.Presence {
    place == Self.ownPlace ? Processes.presence(of: process, startedAt: start) : .unknown
  }
}
