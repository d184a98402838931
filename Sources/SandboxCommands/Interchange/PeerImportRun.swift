internal import ArchiveStore
internal import Codecs
internal import Interchange
internal import SystemIO

/// An import of the snapshots of another backup program in progress.
struct PeerImportRun {
  let peer: Peer
  let options: PeerImportOptions
  let repository: Repository
  let counters: ProgressCounters
  let console: Console
  private var imported = 0
  private var present = 0
  private var failed = 0
  /// The number of imported snapshots with skipped entries.
  private var incomplete = 0
  private var bytes: UInt64 = 0
  private var storedBytes: UInt64 = 0
  /// The elements of the program's list that are not snapshots.
  private var unreadable = 0

  init(
    peer: Peer, options: PeerImportOptions, repository: Repository, counters: ProgressCounters,
    console: Console
  ) {
    (self.peer, self.options, self.repository) = (peer, options, repository)
    (self.counters, self.console) = (counters, console)
  }

  /// Warns about elements of the program's list that are not snapshots.
  mutating func warn(of list: PeerSnapshot.List) {
    for fault in list.faults { console.warning("\(peer.kind.rawValue) lists \(fault)") }
    unreadable = list.faults.count
    if list.incomplete > 0, !options.output.quiet {
      let count = Sizes.count(list.incomplete, "incomplete snapshot")
      console.note("\(peer.kind.rawValue) lists \(count), which cannot be imported")
    }
  }

  /// Imports the snapshots that were not imported before, and prints the summary, even after an
  /// error. A snapshot that cannot be imported does not stop the others.
  mutating func importAll(
    _ snapshots: [PeerSnapshot], _ isStopping: @escaping @Sendable () -> Bool
  ) throws -> ExitStatus {
    var work = try PeerImport(
      from: peer, to: repository, name: options.name, cache: repository.hostHeadCache)
    do {
      for snapshot in snapshots {
        if work.hasImported(snapshot) {
          present += 1
          try show(snapshot, "present")
        } else if options.dryRun {
          imported += 1
          try show(snapshot, "would-import")
        } else {
          try importOne(snapshot, by: &work, isStopping: isStopping)
        }
      }
    } catch {
      try showSummary(of: snapshots.count, isInterrupted: isStopping())
      throw isStopping() ? interruption : error
    }
    try showSummary(of: snapshots.count, isInterrupted: false)
    if failed > 0, imported + present == 0 { return .failed }
    return failed + incomplete + unreadable > 0 ? .doneInPart : .done
  }

  private mutating func importOne(
    _ snapshot: PeerSnapshot, by work: inout PeerImport,
    isStopping: @escaping @Sendable () -> Bool
  ) throws {
    let request = ImportRequest(
      work.placement(of: snapshot), to: repository, tags: options.tags.flatMap(\.tags),
      counters: counters,
      isStopping: isStopping)
    do {
      let report = try work.run(snapshot, request)
      imported += 1
      if !report.isComplete { incomplete += 1 }
      bytes += report.snapshot.snapshot.totals.bytes
      storedBytes += report.statistics.storedBytes
      try show(snapshot, report.isComplete ? "imported" : "incomplete", report: report)
    } catch let error as InterchangeError
      where error.kind != .interrupted && error.kind != .system
    {
      try fail(snapshot, error)
    } catch let error as OperationError where error.code == .nothingReadable {
      try fail(snapshot, error)
    }
  }

  private var interruption: OperationError {
    OperationError(
      .interrupted, "the import was interrupted: \(Sizes.count(imported, "snapshot")) imported",
      hint: "run it again: it continues with the first snapshot that was not imported")
  }

  private mutating func fail(_ snapshot: PeerSnapshot, _ error: any ReportableError) throws {
    failed += 1
    counters.didFail()
    console.warning("not imported: \(snapshot.line): \(error.description)")
    if let hint = error.hint { console.hint(hint) }
    try show(snapshot, "failed", error: error.description)
  }
}

// MARK: - Output

extension PeerImportRun {
  private func show(
    _ snapshot: PeerSnapshot, _ outcome: String, report: ImportReport? = nil,
    error: String? = nil
  ) throws {
    if options.output.json {
      try console.result(json(of: snapshot, outcome, report: report, error: error))
    } else if !options.output.quiet {
      if let report { try console.result("imported \(snapshot.line)\(report.ending)") }
      if outcome == "would-import" { try console.result("would import \(snapshot.line)") }
    }
    try flush()
    guard let report else { return }
    console.warn(of: report.remarks)
    console.show(report.skipped, "not imported: ", all: options.list.all)
    console.warn(ofRefused: report.snapshot, in: repository)
  }

  /// Writes each line at once: an import may take hours.
  private func flush() throws {
    var failure: (any Error)?
    DrawnLine.past {
      do { try console.flush() } catch { failure = error }
    }
    if let failure { throw failure }
  }

  private func json(
    of snapshot: PeerSnapshot, _ outcome: String, report: ImportReport?, error: String?
  ) -> JSON {
    var members: [JSON.Member] = [
      JSON.Member("source_id", .string(snapshot.id)),
      JSON.Member("time", .string(snapshot.time.rfc3339)),
      JSON.Member("host", .string(snapshot.host)), JSON.Member("user", .string(snapshot.user)),
      JSON.Member("paths", .array(snapshot.paths.map { .string($0) })),
      JSON.Member("tags", .array(snapshot.tags.map { .string($0) })),
      JSON.Member("outcome", .string(outcome)),
    ]
    if !snapshot.name.isEmpty { members.append(JSON.Member("name", .string(snapshot.name))) }
    if let error { members.append(JSON.Member("error", .string(error))) }
    if let report {
      let totals = report.snapshot.snapshot.totals
      members += [
        JSON.Member("id", .string(report.snapshot.id.hex)),
        JSON.Member("files", .integer(Int64(clamping: totals.files))),
        JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
        JSON.Member("new_bytes", .integer(Int64(clamping: report.statistics.newBytes))),
        JSON.Member("stored_bytes", .integer(Int64(clamping: report.statistics.storedBytes))),
        JSON.Member("skipped", .integer(Int64(report.skipped.entryCount))),
        JSON.Member("dropped_properties", .integer(Int64(report.skipped.propertyCount))),
      ]
    }
    return .object(members)
  }

  private func showSummary(of count: Int, isInterrupted: Bool) throws {
    if options.output.json {
      let summary: JSON = [
        "dry_run": .bool(options.dryRun), "snapshots": .integer(Int64(count)),
        "imported": .integer(Int64(imported)), "present": .integer(Int64(present)),
        "failed": .integer(Int64(failed)), "incomplete": .integer(Int64(incomplete)),
        "unreadable": .integer(Int64(unreadable)), "bytes": .integer(Int64(clamping: bytes)),
        "stored_bytes": .integer(Int64(clamping: storedBytes)),
        "interrupted": .bool(isInterrupted),
      ]
      let line: JSON = ["summary": summary]
      return try console.result(line)
    }
    if options.output.quiet { return }
    var parts = [
      "\(options.dryRun ? "would import" : "imported") \(Sizes.count(imported)) of "
        + Sizes.count(count, "snapshot")
    ]
    if present > 0 { parts.append("\(Sizes.count(present)) existed before") }
    if failed > 0 { parts.append("\(Sizes.count(failed)) failed") }
    if storedBytes > 0 { parts.append("\(Sizes.text(storedBytes)) stored") }
    try console.result(parts.joined(separator: ", "))
  }
}

extension PeerSnapshot {
  /// The snapshot for people: `04666e5c of 2026-01-02 03:04:05, ada@laptop:/home/ada`.
  var line: String {
    let origin = name.isEmpty ? paths.joined(separator: ",") : name
    return "\(id.prefix(8)) of \(Times.text(time)), " + "\(user)@\(host):\(origin)".shown
  }
}

extension ImportReport {
  /// The new snapshot, to continue a line.
  fileprivate var ending: String {
    let totals = snapshot.snapshot.totals
    return " as \(snapshot.id.hex.prefix(8)): \(Sizes.count(Int(clamping: totals.files), "file")) "
      + "with \(Sizes.text(totals.bytes)), \(Sizes.text(statistics.storedBytes)) stored"
  }
}
