import PolicyEngine
import SampleDevice
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Scenario
@testable import ScenarioRunner

/// The results of a run, and the files that it leaves.
struct RunTests {
  private typealias Step = RunnerFixture

  @Test func failureNamesTheLine() throws {
    let fixture = try RunnerFixture()
    let results = try fixture.run(
      RunnerFixture.document([
        Step.expect("apps/org.example.notebook/data/Missing", .exists, line: 41)
      ]))
    #expect(results.count == 1 && results[0].status == .failed)
    #expect(results[0].failures.map(\.location.line) == [41])
    #expect(try fixture.directory.directory.names().isEmpty)
  }

  @Test func stepThatCannotBeDoneIsAnErrorWithItsLine() throws {
    let results = try RunnerFixture().run(
      RunnerFixture.document([Step.step(.offload(app: "nowhere"), line: 12)]))
    guard case .error(let problem) = results[0].outcome else {
      Issue.record("\(results)")
      return
    }
    #expect(problem.location.line == 12 && problem.message.contains("nowhere"))
  }

  @Test func stepThatUnexpectedlySucceedsIsAFailure() throws {
    let results = try RunnerFixture().run(
      RunnerFixture.document([
        Step.step(.recover, failure: .appRunning),
        Step.step(.offload(app: "x"), failure: .appRunning),
      ]))
    #expect(results[0].failures.map(\.found).first == "it succeeds")
    #expect(results[0].failures.last?.found.contains("no_app") == true)
  }

  @Test func stepsApplyToTheirVersions() throws {
    let old = try #require(OSVersion.Range("<5.1"))
    let results = try RunnerFixture().run(
      RunnerFixture.document(
        [Step.step(.offload(app: "nowhere"), versions: old)], versions: ["5.0", "5.1", "now"]))
    #expect(results.map(\.status) == [.error, .skipped, .skipped])
    #expect(results.map(\.version) == ["5.0", "5.1", "now"])
  }

  @Test func deviceIsNotChanged() throws {
    let (fixture, source) = (try RunnerFixture(), try TemporaryDirectory("source"))
    _ = try SampleDevice.make(at: source.path("device"))
    let before = try TreeRecord.all(in: source, "device")
    let results = try fixture.run(
      RunnerFixture.document(
        [
          Step.write("Documents/x", "x"), Step.step(.purge(.level(.critical))),
          Step.step(.update(.init(app: "notebook", source: .version("9"), isStrict: true))),
          Step.step(.backup(.init(name: nil, view: .keep))),
          Step.step(.restore(.init(target: .newDevice, snapshot: nil, app: nil))),
        ], device: .root(source.path("device"), layout: nil)))
    #expect(results.map(\.outcome) == [.passed])
    #expect(try TreeRecord.all(in: source, "device") == before)
    #expect(try source.directory.names() == ["device"])
  }

  @Test func deviceWithAContainerElsewhereIsRefused() throws {
    let (fixture, source) = (try RunnerFixture(), try TemporaryDirectory("source"))
    _ = try SampleDevice.make(at: source.path("device"))
    let above: ByteString = "device/data/Containers/Data"
    let directory = try Directory.open(path: source.path(above))
    try directory.rename("Application", to: "moved", in: source.directory)
    try directory.createLink("Application", to: source.path("moved"))
    let results = try fixture.run(
      RunnerFixture.document(
        [Step.write("Documents/x", "x")], device: .root(source.path("device"), layout: nil)))
    guard case .error(let problem) = results[0].outcome else {
      Issue.record("\(results)")
      return
    }
    #expect(problem.message.contains("outside the device's directory"))
  }

  @Test func writeFollowsNoLink() throws {
    let (fixture, source) = (try RunnerFixture(), try TemporaryDirectory("source"))
    _ = try SampleDevice.make(at: source.path("device"))
    try source.write("outside", at: "target/file")
    let documents =
      "device/data/Containers/Data/Application/D23F0824-128B-4F33-8C5C-7FD0A6A3A450/Documents"
    try Directory.open(path: source.path(ByteString(documents)))
      .createLink("out", to: source.path("target"))
    let results = try fixture.run(
      RunnerFixture.document(
        [Step.write("Documents/out/file", "x")],
        device: .root(source.path("device"), layout: nil)))
    #expect(results[0].status == .error)
    #expect(try source.read("target/file") == Array("outside".utf8))
  }

  @Test func copyOfAFailedScenarioIsKept() throws {
    let (fixture, kept) = (try RunnerFixture(), try TemporaryDirectory("kept"))
    let document = try RunnerFixture.document([
      Step.write("Documents/x", "x"), Step.expect("apps/none/**", .exists),
    ])
    _ = try fixture.run(document) { $0.kept = kept.path("copies") }
    #expect(try Directory.open(path: kept.path("copies")).names() == ["test-now"])
    #expect(try Directory.open(path: kept.path("copies/test-now")).names().contains("device-1"))
    #expect(try fixture.directory.directory.names().isEmpty)
  }

  /// A copy of an earlier run is replaced, but no file of the user. Cases with the same name are
  /// kept next to each other.
  @Test func keptCopiesReplaceNothingElse() throws {
    let (fixture, kept) = (try RunnerFixture(), try TemporaryDirectory("kept"))
    let document = try RunnerFixture.document([Step.expect("apps/none/**", .exists)])
    try kept.write("precious", at: "user/test-now/photo")
    let refused = try fixture.run(document) { $0.kept = kept.path("user") }
    guard case .error(let problem) = refused[0].outcome else {
      Issue.record("\(refused)")
      return
    }
    #expect(problem.message.contains("test-now") && problem.failures.count == 1)
    #expect(try kept.read("user/test-now/photo") == Array("precious".utf8))
    for _ in 0..<2 {
      _ = try fixture.run(document) { $0.kept = kept.path("copies") }
      #expect(try Directory.open(path: kept.path("copies")).names() == ["test-now"])
    }
    var options = fixture.options
    options.kept = kept.path("both")
    let one = ScenarioCase(document, .now)
    _ = try ScenarioRunner(options).run([one, one])
    #expect(try Directory.open(path: kept.path("both")).names() == ["test-now", "test-now-2"])
    #expect(try fixture.directory.directory.names().isEmpty)
  }

  /// The directory of a run that was killed is not locked.
  @Test func nextRunRemovesFilesOfAKilledRun() throws {
    let fixture = try RunnerFixture()
    let dead = "sandboxctl-scenarios-0123456789abcdef"
    let others = ["sandboxctl-scenarios-x", "sandboxctl-scenarios-0123456789abcdee"]
    for name in [dead] + others.prefix(1) {
      try fixture.directory.write("x", at: ByteString("\(name)/case-0/device-1/file"))
    }
    // A link, and the directory of a run that is still in progress, stay.
    try fixture.directory.directory.createLink(
      ByteString(others[1]), to: fixture.directory.path(ByteString(others[0])))
    let alive: ByteString = "sandboxctl-scenarios-fedcba9876543210"
    try fixture.directory.write("x", at: alive.appending("case-0/file"))
    let lock = try FileLock(fixture.directory.directory.directory(alive))
    let document = try RunnerFixture.document([Step.write("Documents/x", "x")])
    #expect(try fixture.run(document).map(\.outcome) == [.passed])
    #expect(
      try fixture.directory.directory.names()
        == (others.map { ByteString($0) } + [alive]).sorted())
    _ = consume lock
    #expect(try fixture.run(document).map(\.outcome) == [.passed])
    #expect(try fixture.directory.directory.names() == others.map { ByteString($0) }.sorted())
    #expect(
      try fixture.directory.directory.directory(ByteString(others[0])).names() == ["case-0"])
  }

  /// A volume with some bytes of free space, in whole blocks.
  private static func volume(_ available: UInt64) -> VolumeSpace {
    var space = VolumeSpace(available: available, total: 1 << 40)
    space.keeping = .blocks(4096)
    return space
  }

  /// Nothing runs if a copy does not fit; if several copies do not fit together, fewer cases run at
  /// once.
  @Test func copiesThatDoNotFitAreRefusedBeforeTheRun() throws {
    let (fixture, source) = (try RunnerFixture(), try TemporaryDirectory("source"))
    // Copies that share their blocks with the device need no space.
    if try fixture.directory.directory.mayShareBlocks() { return }
    _ = try SampleDevice.make(at: source.path("device"))
    let document = try RunnerFixture.document(
      [Step.write("Documents/x", "x")], device: .root(source.path("device"), layout: nil))
    let error = #expect(throws: OperationError.self) {
      try fixture.run(document) { options in
        options.kept = source.path("kept")
        options.space = { _ in Self.volume(64 << 10) }
      }
    }
    #expect(error?.code == .noSpace)
    #expect(error?.description.contains("are free there") == true, "\(error as Any)")
    #expect(error?.hint?.contains("TMPDIR") == true)
    #expect(try fixture.directory.directory.names().isEmpty)
    #expect(try source.directory.names() == ["device"])

    let device = try Directory.open(path: source.path("device"))
    let measured = try TreeCopy.size(of: device, on: Self.volume(0), isStopping: { false })
    let size = try #require(measured)
    #expect(size.bytes > 1 << 20 && size.entries > 200)
    var options = fixture.options
    options.space = { _ in Self.volume(2 * size.bytes + 1) }
    let cases = Array(repeating: ScenarioCase(document, .now), count: 3)
    #expect(try CopyRoom(for: cases, in: fixture.directory.path, options).copies == 2)
    #expect(try ScenarioRunner(options).run(cases).allSatisfy { $0.outcome == .passed })
  }

  @Test func stoppedRunLeavesNothing() throws {
    let fixture = try RunnerFixture()
    #expect(throws: OperationError.self) {
      try fixture.run(RunnerFixture.document([Step.step(.recover)])) { $0.isStopping = { true } }
    }
    #expect(try fixture.directory.directory.names().isEmpty)
  }
}
