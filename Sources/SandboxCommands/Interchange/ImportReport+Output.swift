internal import ArchiveStore
internal import Codecs
internal import Interchange
internal import SystemIO

extension ImportReport {
  /// Prints the report and returns the exit status: 3 if the snapshot lacks something of the
  /// source.
  ///
  /// - Parameters:
  ///   - path: the logical path of the entries; empty if the source has logical paths.
  ///   - origin: the device, for people, if the source has logical paths.
  ///   - format: the format of the source, for people.
  ///   - members: the further members of the JSON object.
  func show(
    at path: ByteString, of origin: String? = nil, format: String, with members: [JSON.Member] = [],
    in repository: Repository, all: Bool, _ console: Console, _ output: OutputOptions
  ) throws -> ExitStatus {
    if output.json {
      try console.result(json(at: path, format: format, with: members))
    } else if !output.quiet {
      try console.result(line(origin.map { "of \($0)" } ?? "in '\(path)'"))
    }
    console.warn(of: remarks)
    console.show(skipped, "not imported: ", all: all)
    if let damage {
      console.warning(
        damage.isSuspect
          ? "\(damage): any of the imported files may be wrong, since nothing shows where the damage "
            + "is: import another copy of the source"
          : "\(damage): what precedes the damage was imported")
    }
    console.warn(ofRefused: snapshot, in: repository)
    return isComplete ? .done : .doneInPart
  }

  private func line(_ place: String) -> String {
    let totals = snapshot.snapshot.totals
    return "snapshot \(snapshot.id.hex.prefix(8)) of \(Times.text(snapshot.snapshot.time)): "
      + "\(Sizes.count(Int(clamping: totals.files), "file")) with \(Sizes.text(totals.bytes)) "
      + "\(place), \(unchanged > 0 ? "\(Sizes.count(unchanged)) unchanged, " : "")"
      + "\(Sizes.text(statistics.storedBytes)) stored"
  }

  private func json(
    at path: ByteString, format: String, with others: [JSON.Member]
  ) -> JSON {
    let totals = snapshot.snapshot.totals
    let members: [JSON.Member] = [
      JSON.Member("id", .string(snapshot.id.hex)),
      JSON.Member("time", .string(snapshot.snapshot.time.rfc3339)),
      JSON.Member("format", .string(format)),
      JSON.Member("entries", .integer(Int64(clamping: totals.entries))),
      JSON.Member("files", .integer(Int64(clamping: totals.files))),
      JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
      JSON.Member("new_bytes", .integer(Int64(clamping: statistics.newBytes))),
      JSON.Member("stored_bytes", .integer(Int64(clamping: statistics.storedBytes))),
      JSON.Member("skipped", .integer(Int64(skipped.entryCount))),
      JSON.Member("dropped_properties", .integer(Int64(skipped.propertyCount))),
      JSON.Member("damage", damage.map { .string($0.description) } ?? .null),
      JSON.Member("suspect", .bool(damage?.isSuspect ?? false)),
    ]
    return .object(JSON.path(path) + members + others)
  }
}

extension Console {
  /// Prints the skipped entries as warnings, and a count of those that are not listed.
  func show(_ skipped: SkippedEntries, _ word: String, all: Bool) {
    let missing = skipped.listed.filter { !$0.isPropertyOnly && !$0.isSuspect }
    remarks(
      missing.map { PathRemark(path: $0.path, remark: $0.reason) }, as: .warning(word), all: all)
    let suspect = skipped.listed.filter(\.isSuspect)
    remarks(
      suspect.map { PathRemark(path: $0.path, remark: $0.reason) }, as: .warning("suspect: "),
      all: all)
    let dropped = skipped.listed.filter(\.isPropertyOnly)
    remarks(
      dropped.map { PathRemark(path: $0.path, remark: $0.reason) }, as: .warning(""), all: all)
    let others =
      skipped.entryCount - skipped.expectedCount + skipped.propertyCount - skipped.listed.count
    if others > 0 { warning("\(word)\(Sizes.count(others)) more are not listed") }
  }
}
