import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands of docs/fleet.md, as they are printed there: the set-up of many hosts with one
/// repository in a bucket, the keeper's jobs, and the restore of a host. Each host is a home
/// directory, and `ssh` and `systemctl` are scripts of the test.
@Suite(.enabled(if: Program.exists("age-keygen"))) struct FleetSetupTests {
  private let cli: CommandLine
  private let store: FaultStore
  private let document: String
  private static let hosts = ["phone", "laptop", "tablet"]

  init() throws {
    cli = try CommandLine()
    store = try FaultStore()
    document = try String(
      contentsOf: Shared.packageRoot.appendingPathComponent("docs/fleet.md"), encoding: .utf8)
    try program("sandboxctl", "exec \(CommandLine.program) \"$@\"")
    try program("systemctl", "echo \"$*\" >> \"$HOME/systemctl\"")
    // A login has the environment of its host, not that of the keeper.
    try program(
      "ssh",
      """
      host=$1; shift; cd "\(cli.directory.string)/$host" || exit 255
      exec env -i HOME="$PWD" PATH="$PATH" TZ=UTC sh -c "$*"
      """)
    for host in Self.hosts {
      try cli.directory.write(Self.credentials, at: ByteString("home/keys/\(host)"))
      try cli.directory.write(
        "note of \(host)", at: ByteString("\(host)/.var/app/org.example.Notes/data/note"))
    }
    try cli.directory.write(Self.credentials, at: "home/.aws/credentials")
  }

  private static let credentials =
    "[default]\naws_access_key_id = KEY\naws_secret_access_key = SECRET\n"

  private func program(_ name: String, _ script: String) throws {
    try cli.writeProgram(script, at: ByteString("bin/\(name)"))
  }

  /// Returns the block of commands of the document that contains a text.
  private func block(with text: String) throws -> String {
    let blocks = document.split(separator: "```\n").map(String.init)
    return try #require(blocks.first { $0.contains(text) && !$0.contains("\n\n") })
  }

  /// Runs commands of the document as the keeper, with the location of the test's store.
  private func run(_ script: String, environment: [String: String] = [:]) throws -> String {
    let own = [
      "HOME": cli.directory.string + "/home", "TZ": "UTC",
      "PATH": cli.directory.string + "/bin:/usr/bin:/bin",
    ]
    let outcome = try Program.run(
      "sh", ["-euc", script], environment: own.merging(environment) { $1 },
      cleanEnvironment: true, in: cli.directory.url.appendingPathComponent("home"))
    guard outcome.code == 0 else {
      throw Program.Failure(description: "\(script)\n\(outcome.output)\(outcome.errors)")
    }
    return outcome.output
  }

  private func setUp() throws {
    let setUp = try block(with: "for host in")
    #expect(setUp.split(separator: "\n").count == 10, "the set-up has ten lines")
    let script = setUp.replacing("s3://backups/fleet", with: "s3://bucket/fleet")
      .replacing("https://store.example:9000", with: store.endpoint)
    _ = try run(script)
    // Nothing in the loop depends on the others, so it can run again.
    let loop = try #require(script.range(of: "for host in"))
    let head = script.split(separator: "\n")[0]
    _ = try run("\(head)\n\(script[loop.lowerBound...])")
  }

  private let key = ["SANDBOXCTL_IDENTITY_FILE": "fleet.key"]

  @Test func theSetUpOfTheDocumentWorks() throws {
    try setUp()
    let listed = try run("sandboxctl snapshots --json", environment: key).split(separator: "\n")
      .map { try CommandLine.object($0) }
    #expect(listed.count == 2 * Self.hosts.count)
    #expect(listed.allSatisfy { $0["trusted"] as? Bool == true }, "\(listed)")
    for host in Self.hosts {
      let schedule = try String(
        contentsOfFile: cli.directory.string + "/\(host)/systemctl", encoding: .utf8)
      #expect(schedule.contains("sandboxctl-backup.timer"), "\(host): \(schedule)")
      // A host has no key, and cannot read even its own snapshots.
      let files = try Program.run(
        "grep", ["-rl", "AGE-SECRET-KEY", "\(cli.directory.string)/\(host)"])
      #expect(files.output.isEmpty, "\(files.output)")
    }
    #expect(throws: Program.Failure.self) { try run("ssh phone sandboxctl ls latest") }
  }

  @Test func theKeepersJobsAndTheRestoreOfTheDocumentWork() throws {
    try setUp()
    let place = cli.directory.string + "/home"
    let jobs = try block(with: "10 6 * * *").split(separator: "\n").dropFirst().map { line in
      line.split(separator: " ", maxSplits: 5)[5]
        .replacing("/usr/local/bin/", with: "").replacing("\\%", with: "%")
        .replacing("/var/lib/prometheus/node-exporter", with: place)
    }
    #expect(jobs.count == 2)
    for job in jobs { _ = try run(String(job), environment: key) }
    for name in ["forget", "check"] {
      let metrics = try String(contentsOfFile: "\(place)/fleet-\(name).prom", encoding: .utf8)
      for line in try block(with: "time() - ").split(separator: "\n") {
        let metric = try #require(line.firstMatch(of: /sandboxctl_[a-z_]+/)).output
        guard metric.hasPrefix("sandboxctl_\(name)_") else { continue }
        #expect(metrics.contains("\n\(metric){"), "\(metric) of\n\(metrics)")
      }
    }
    // The rules keep the last snapshot of a day, and the oldest one of a device.
    let kept = try run("sandboxctl snapshots --json", environment: key).split(separator: "\n")
      .map { try CommandLine.object($0) }
    #expect(kept.count == 2 * Self.hosts.count)
    let phone = try #require(
      kept.first { "\($0)".contains("\(cli.directory.string)/phone") }?["id"] as? String)
    let restore = try block(with: "--to back;").replacing("a1b71e8f", with: phone)
      .replacing("/dev/shm", with: cli.directory.string)
    _ = try run(restore)
    let found = try Program.run(
      "find", ["\(cli.directory.string)/phone/back", "-name", "note", "-exec", "cat", "{}", ";"])
    #expect(found.output == "note of phone", "\(found)")
    #expect(!FileManager.default.fileExists(atPath: cli.directory.string + "/fleet.key"))
  }
}
