import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Commands on a bucket that are interrupted or killed while the store does not do its work.
@Suite(.serialized) struct RemoteSignalTests {
  private let fixture: S3CommandFixture

  init() throws {
    fixture = try S3CommandFixture()
    _ = try fixture.succeed("init s3://bucket/place --plain")
  }

  /// The store answers that it is overloaded, so that the program waits before each further
  /// attempt.
  @Test(arguments: [
    ("backup --root data --layout folder", "PUT", "place/"), ("prune", "PUT", "place/"),
    ("check --read-data", "GET", "/packs/"), ("restore latest --to back", "GET", "/packs/"),
  ]) func anInterruptEndsTheWaitForAStore(command: String, method: String, path: String) throws {
    _ = try fixture.backUp()
    try fixture.store.setRules(
      #"[{"method": "\#(method)", "path": "\#(path)", "status": 503, "times": 0, "#
        + #""headers": {"Retry-After": "50"}}]"#)
    let run = fixture.start(command)
    try fixture.awaitRequests(1, method, path)
    // Time to receive the answer: the program is then waiting.
    Host.pause(seconds: 0.2)
    let began = Host.monotonicSeconds()
    try fixture.signal(SIGINT)
    let outcome = try run.outcome()
    // Two seconds at most, and more only for a machine that is busy with other tests.
    #expect(Host.monotonicSeconds() - began < 5)
    #expect(outcome.code == 130, "\(outcome)")
    #expect(outcome.errors.contains("interrupted"), "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: run it again"), "\(outcome.errors)")
    try fixture.store.setRules("[]")
    _ = try fixture.succeed("check --read-data --repo s3://bucket/place")
  }

  /// A request without an answer also ends.
  @Test func anInterruptEndsARequestWithoutAnAnswer() throws {
    try fixture.store.setRules(#"[{"method": "PUT", "delay": 20, "times": 0}]"#)
    let run = fixture.start("backup --root data --layout folder")
    try fixture.awaitRequests(1, "PUT", "place/")
    let began = Host.monotonicSeconds()
    try fixture.signal(SIGINT)
    #expect(try run.outcome().code == 130)
    #expect(Host.monotonicSeconds() - began < 12)
  }

  /// A backup that is killed at any request loses nothing, and the next one makes one snapshot.
  @Test func aKilledBackupLosesNothing() throws {
    _ = try fixture.backUp()
    var random = Seeded.fresh("killed backup")
    for round in 0..<Sampling.count(2, of: 8) {
      try fixture.cli.directory.write(random.bytes(100_000), at: "data/new")
      let before = try fixture.snapshots()
      try fixture.store.setRules(#"[{"delay": 0.02, "times": 0}]"#)
      let run = fixture.start("backup --root data --layout folder")
      try fixture.awaitRequests(Int.random(in: 1...10, using: &random), "", "")
      try fixture.signal(SIGKILL)
      _ = try run.outcome()
      try fixture.store.setRules("[]")
      _ = try fixture.succeed("check --read-data --repo s3://bucket/place")
      let between = try fixture.snapshots()
      #expect(between.starts(with: before) && between.count <= before.count + 1, "\(round)")
      _ = try fixture.backUp()
      #expect(try fixture.snapshots().count == between.count + 1, "\(round)")
    }
    _ = try fixture.succeed("check --read-data --repo s3://bucket/place")
  }
}
