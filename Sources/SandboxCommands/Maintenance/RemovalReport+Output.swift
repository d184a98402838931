internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension RemovalReport {
  /// Returns the line about packs that wait for other programs.
  ///
  /// - Parameters:
  ///   - noun: the word for one of the packs.
  ///   - remover: the words for the run that removes them.
  func waitingLine(of noun: String, removedBy remover: String) -> String {
    let packs = Sizes.count(waitingPacks, noun)
    let running = waitingFor.count - endedLeases.count
    let programs = Sizes.count(running, "running program")
    let end = ": \(remover) removes them ('sandboxctl leases' lists the programs)"
    guard !endedLeases.isEmpty else { return "\(packs) may be needed by \(programs)\(end)" }
    return "\(packs) \(waitingPacks == 1 ? "waits" : "wait") for "
      + (running > 0 ? "\(programs) and " : "") + "\(endedPrograms)\(end)"
  }

  private var endedPrograms: String {
    let count = Sizes.count(endedLeases.count, "program")
    let isOne = endedLeases.count == 1
    let words =
      "\(count) that ended without releasing \(isOne ? "its lease" : "their leases")"
    guard let last = endedLeases.compactMap(\.expiry).max() else { return words }
    return words + (isOne ? ", which expires at " : ", the last of which expires at ")
      + Times.text(last)
  }

  /// The leases whose programs have ended, as values of JSON.
  var endedLeasesJSON: JSON {
    .array(
      endedLeases.map { lease in
        [
          "lease": .string(lease.name.description),
          "expires": lease.expiry.map { .string($0.rfc3339) } ?? .null,
        ]
      })
  }
}
