internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl check`: whether everything in a repository is as it was written.
struct CheckCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "check",
      abstract: "Check a repository for damage, and tell what it costs",
      usage: "sandboxctl check [--read-data | --read-data-subset <part>] [<options>]",
      discussion: """
        Reads every snapshot, every directory in them and the index, and finds whether all packs that \
        hold their data are there. With --read-data every pack is read to its last byte, too, and \
        each piece of a file is held against its checksum.

        Exit status 13 says that something is damaged: each damaged object is named, then each path \
        that cannot be restored from which snapshots. All else can still be restored. Remarks (what \
        an interrupted backup left, empty directories that a copy left out) are no damage. 130 says \
        that the check was interrupted.

        Damaged packs are recorded in the repository: later backups do not use what they hold, and \
        store it again from the source.

        With --json each finding is a line: finding (damage, cost, remark), object or path and \
        snapshots, reason. The last line is the summary. With --verbose, before them a line each \
        second, how far the reading of data is.

        \(Examples.text([
          "sandboxctl check --repo repo", "sandboxctl check --read-data --repo repo",
          "sandboxctl check --read-data-subset 1/4 --repo repo",
        ]))
        """)
  }

  @Flag(help: "Read all data, too.")
  var readData = false

  @Option(
    help: ArgumentHelp(
      "Read a part of the data: 10% chosen by chance, or 2/7 for the second of seven groups that "
        + "together are all.", valueName: "part"))
  var readDataSubset: String?

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let reading = try reading()
    let checked = try repository.open().repository
    let counters = ProgressCounters()
    let result = try progress.run(counters, output) { isStopping in
      try RepositoryCheck(
        checked, reading: reading, workers: Host.processors, counters: counters,
        isStopping: isStopping
      ).run()
    }
    let report = try result.tell { finding in
      if output.json {
        try console.result(finding.json)
      } else if !output.quiet || finding.isDamage {
        try console.result(finding.text)
      }
    }
    if output.json {
      try console.result(report.json)
    } else if !output.quiet {
      for line in report.lines(reading) { try console.result(line) }
    }
    record(result, console)
    hint(report, console)
    return report.damaged == 0 && report.costs == 0 ? .done : .damaged
  }

  private func hint(_ report: CheckReport, _ console: Console) {
    if report.isIndexDamaged {
      console.hint(
        "'sandboxctl repair index\(repository.suffix)' makes the index anew from the packs")
    }
    if report.arePacksDamaged, !output.json {
      console.hint(
        "back up again: what the damaged packs hold is stored again where the source has it; then "
          + "'sandboxctl repair packs\(repository.suffix)' saves what is whole in them")
    }
  }

  /// Records the damage for later backups; a repository that cannot be written to is no failure of the
  /// check.
  private func record(_ result: CheckResult, _ console: Console) {
    do throws(StoreError) {
      try result.recordDamage()
    } catch {
      console.warning("the damaged packs are not recorded, so backups go on using them: \(error)")
    }
  }

  private func reading() throws -> CheckReading {
    guard let part = readDataSubset else { return readData ? .everything : .trees }
    if readData {
      throw UsageError(
        "'--read-data' and '--read-data-subset' exclude each other", hint: "give one of them")
    }
    let numbers = part.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
    if numbers.count == 2, let group = numbers[0], let count = numbers[1],
      (1...65_536).contains(count), (1...count).contains(group)
    {
      return .group(group, count: count)
    }
    if part.hasSuffix("%"), let percent = Double(part.dropLast()), percent > 0, percent <= 100 {
      return .fraction(percent / 100)
    }
    throw UsageError(
      "'\(ByteString(part))' is no part of the data",
      hint: "write it as '10%', or as '2/7' for the second of seven groups")
  }
}
