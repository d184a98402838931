import Foundation
import SystemIO
import TestSupport
import Testing

/// The metrics of a repository of several hosts: a label for the host of each sample, and the
/// snapshots of each host if one of them runs a check or a removal.
struct HostMetricsTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    try cli.directory.write("kept", at: "data/kept")
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private func backUp(as host: String? = nil) throws {
    let wrapper =
      host.map { ["unshare", "--uts", "sh", "-c", #"hostname "$0"; exec "$@""#, $0] } ?? []
    let line = "backup --layout folder --root data --repo repo --quiet --metrics b.prom"
    let outcome = try cli.run(line, under: wrapper)
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome)")
  }

  private func metrics(_ name: String, of operation: String) throws -> ExpositionText {
    let bytes = try cli.directory.read(ByteString(name))
    var text = try ExpositionText(String(decoding: bytes, as: UTF8.self))
    text.operation = operation
    return text
  }

  private func values(_ name: String, in text: ExpositionText) -> [String: Double] {
    let samples = text.samples.filter { $0.name == "sandboxctl_\(text.operation)_\(name)" }
    return Dictionary(uniqueKeysWithValues: samples.map { ($0.labels["host"] ?? "", $0.value) })
  }

  @Test func eachSampleNamesTheHost() throws {
    try backUp()
    let text = try metrics("b.prom", of: "backup")
    #expect(text.samples.count > 8)
    #expect(text.samples.allSatisfy { $0.labels["host"] == Host.name })
  }

  @Test func snapshotsOfEachHostAreCounted() throws {
    let start = Date().timeIntervalSince1970
    for _ in 0..<3 { try backUp() }
    _ = try cli.succeed("check --repo repo --quiet --metrics c.prom")
    let check = try metrics("c.prom", of: "check")
    #expect(check.value("hosts") == 1)
    #expect(values("host_snapshots", in: check) == [Host.name: 3])
    let newest = values("host_newest_snapshot_timestamp_seconds", in: check)
    #expect(try #require(newest[Host.name]) >= start - 1)
    _ = try cli.succeed("forget --keep-last 1 --repo repo --quiet --metrics f.prom")
    let forget = try metrics("f.prom", of: "forget")
    #expect(values("host_snapshots", in: forget) == [Host.name: 1])
    #expect(values("host_newest_snapshot_timestamp_seconds", in: forget) == newest)
  }

  @Test(.enabled(if: Host.userID == 0)) func hostsAreToldApart() throws {
    try backUp()
    try backUp(as: "phone")
    try backUp(as: "phone")
    #expect(
      try metrics("b.prom", of: "backup").samples.allSatisfy { $0.labels["host"] == "phone" })
    _ = try cli.succeed("check --repo repo --quiet --metrics c.prom")
    let check = try metrics("c.prom", of: "check")
    #expect(values("host_snapshots", in: check) == [Host.name: 1, "phone": 2])
    // The check itself ran on this host.
    #expect(values("last_exit_code", in: check) == [Host.name: 0])
    _ = try cli.succeed("forget --keep-last 1 --host phone --repo repo --quiet --metrics f.prom")
    #expect(values("host_snapshots", in: try metrics("f.prom", of: "forget")) == ["phone": 1])
  }

  /// A snapshot that no trusted signer signed may claim to be of any host.
  @Test(.enabled(if: Host.userID == 0)) func unsignedSnapshotsAreOfNoHost() throws {
    try backUp()
    _ = try cli.succeed("key trust --repo repo --quiet")
    _ = try cli.succeed("check --repo repo --quiet --metrics c.prom")
    // Another host signs with a key that nobody trusts.
    let other = try cli.run(
      ["backup", "--layout", "folder", "--root", "data", "--repo", "repo", "--quiet"],
      under: ["unshare", "--uts", "sh", "-c", #"hostname "$0"; exec "$@""#, "tablet"],
      environment: ["HOME": cli.directory.string + "/other"])
    #expect(other.code == 0, "\(other)")
    _ = try cli.run("check --repo repo --quiet --metrics c.prom")
    let check = try metrics("c.prom", of: "check")
    #expect(check.value("untrusted_snapshots") == 1)
    #expect(values("host_snapshots", in: check) == [Host.name: 1])
  }

  /// Files from versions that did not name the host.
  @Test func timeOfTheLastSuccessIsReadWithoutLabels() throws {
    try cli.directory.write(
      """
      # HELP sandboxctl_backup_last_run_timestamp_seconds Unix time.
      # TYPE sandboxctl_backup_last_run_timestamp_seconds gauge
      sandboxctl_backup_last_run_timestamp_seconds 1234.500
      # HELP sandboxctl_backup_last_success_timestamp_seconds Unix time.
      # TYPE sandboxctl_backup_last_success_timestamp_seconds gauge
      sandboxctl_backup_last_success_timestamp_seconds 1234.500

      """, at: "b.prom")
    for _ in 0..<2 {
      let outcome = try cli.run(
        "backup --layout folder --root data --repo nowhere --quiet --metrics b.prom")
      #expect(outcome.code == 10)
      let text = try metrics("b.prom", of: "backup")
      #expect(text.value("last_success_timestamp_seconds") == 1234.5)
      #expect(text.value("last_exit_code") == 10)
    }
  }
}
