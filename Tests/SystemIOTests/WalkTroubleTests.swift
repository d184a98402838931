import Foundation
import SystemIO
import TestSupport
import Testing

struct WalkTroubleTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("trouble") }

  private func make(_ paths: ByteString...) throws {
    for path in paths { try temporary.write("x", at: path) }
  }

  @Test func anUnreadableDirectoryIsReportedAndTheWalkContinues() throws {
    try make("a/f", "closed/secret", "z/f")
    try temporary.directory.setPermissions(0, of: "closed")
    var recorder = WalkRecorder()
    try Unprivileged.run { try recorder.walk(temporary.path) }
    #expect(recorder.seen.keys.sorted() == ["a", "a/f", "closed", "z", "z/f"])
    #expect(recorder.problems.map(\.path) == ["closed"])
    let error = recorder.problems.first?.error
    #expect(error == SystemError(.open, temporary.path("closed"), number: EACCES))
    #expect(error?.description == "cannot open '\(temporary.path("closed"))': permission denied")
  }

  @Test func aDirectoryWithoutSearchPermissionIsReported() throws {
    try make("a/f", "listed/one", "listed/two")
    try temporary.directory.setPermissions(0o444, of: "listed")
    var recorder = WalkRecorder()
    try Unprivileged.run { try recorder.walk(temporary.path) }
    #expect(recorder.seen.keys.sorted() == ["a", "a/f", "listed"])
    #expect(recorder.problems.map(\.path).sorted() == ["listed/one", "listed/two"])
    for problem in recorder.problems {
      #expect(problem.error.operation == .status && problem.error.number == EACCES)
      #expect(problem.error.path == temporary.path.appending(problem.path))
    }
  }

  @Test(arguments: [SystemError.Operation.open, .list, .status])
  func afterAnyFailureTheRestIsVisited(operation: SystemError.Operation) throws {
    try make("a/1", "a/b/2", "c/3", "c/d/e/4", "5")
    var all = WalkRecorder()
    try all.walk(temporary.path)
    let root = try Directory.open(path: temporary.path)
    for first in 1...200 {
      var recorder = WalkRecorder()
      var walk = Walk(try root.duplicate())
      let plan = Faults.Plan(failing: [operation], at: first, number: EIO)
      Faults.inject(plan) { walk.run(&recorder, state: 0) }
      guard plan.hasFired else {
        #expect(first > 4)
        #expect(recorder.problems.isEmpty && recorder.seen.count == all.seen.count)
        break
      }
      #expect(recorder.problems.count == 1, "\(operation) \(first)")
      guard let lost = recorder.problems.first?.path else { continue }
      // Only entries below the reported path, or later in the same listing, are missing.
      for path in all.seen.keys where recorder.seen[path] == nil {
        #expect(path.isWithin(lost), "\(operation) \(first): \(path) below \(lost)")
      }
      #expect(recorder.problems.first?.error.number == EIO)
    }
  }

  @Test func aDeletedEntryIsNotReported() throws {
    try make("a/f", "b/f", "c/f")
    var recorder = WalkRecorder()
    recorder.onVisit = { [temporary] path in
      // This directory was listed and examined, but is removed before it is entered.
      if path.isEmpty { try temporary.directory.removeTree("b") }
    }
    try recorder.walk(temporary.path)
    #expect(recorder.seen.keys.sorted() == ["a", "a/f", "b", "c", "c/f"])
    #expect(recorder.problems.isEmpty && recorder.lost == [1])
    // This one is removed after it was listed and before it is examined.
    var again = WalkRecorder()
    var walk = Walk(try Directory.open(path: temporary.path))
    let plan = Faults.Plan(failing: [.status], at: 2, number: ENOENT)
    Faults.inject(plan) { walk.run(&again, state: 0) }
    #expect(plan.hasFired && again.problems.isEmpty)
    let vanished = try #require(again.vanished.first)
    #expect(try temporary.directory.status(vanished.name).identity.inode == vanished.inode)
    #expect(again.vanished.count == 1 && again.lost.isEmpty)
  }

  /// A strict visitor gets no entries of a directory that is not the one that was listed.
  @Test(arguments: ["directory", "empty directory", "file", "link"])
  func aReplacedDirectoryIsLostToAStrictVisitor(kind: String) throws {
    try make("victim/old", "other/new", "z/f")
    var strict = StrictRecorder()
    strict.recorder.onVisit = { [temporary] path in
      guard path.isEmpty else { return }
      try temporary.directory.rename("victim", to: "hidden", in: temporary.directory)
      switch kind {
      case "directory":
        try temporary.directory.rename("other", to: "victim", in: temporary.directory)
      case "empty directory": _ = try temporary.directory.makeDirectory("victim")
      case "file": try temporary.write("x", at: "victim")
      default: try temporary.directory.createLink("victim", to: "other")
      }
    }
    var walk = Walk(try Directory.open(path: temporary.path))
    walk.run(&strict, state: 0)
    #expect(strict.recorder.problems.isEmpty)
    #expect(strict.recorder.lost.count == (kind == "directory" ? 2 : 1))
    #expect(strict.recorder.seen["victim/new"] == nil && strict.recorder.seen["z/f"] != nil)
  }

  /// This also applies to the directory at which a walk starts for another one.
  @Test func aReplacedStartIsLostToAStrictVisitor() throws {
    try make("a/victim/old")
    let expected = try temporary.directory.directory("a").status("victim").identity
    try temporary.directory.rename("a", to: "b", in: temporary.directory)
    try make("a/victim/new")
    var strict = StrictRecorder()
    func walk(in above: ByteString, state: Int) throws {
      var walk = Walk(try Directory.open(path: temporary.path))
      _ = walk.run(
        &strict, from: WalkStart(name: "victim", depth: 2, state: state, identity: expected)
      ) { [above] }
    }
    try walk(in: "a", state: 7)
    #expect(strict.recorder.lost == [7] && strict.recorder.seen.isEmpty)
    try walk(in: "b", state: 8)
    #expect(strict.recorder.lost == [7] && strict.recorder.seen.count == 1)
  }

  @Test func aLinkThatReplacesADirectoryIsNotFollowed() throws {
    let outside = try TemporaryDirectory("outside")
    try outside.write("secret", at: "secret")
    try make("a/f", "victim/f", "z/f")
    var recorder = WalkRecorder()
    recorder.onVisit = { [temporary] path in
      guard path.isEmpty else { return }
      try temporary.directory.rename("victim", to: "hidden", in: temporary.directory)
      try temporary.directory.createLink("victim", to: outside.path)
    }
    try recorder.walk(temporary.path)
    #expect(recorder.seen.keys.sorted() == ["a", "a/f", "victim", "z", "z/f"])
  }

  @Test func aReplacedDirectoryIsWalkedInItsNewState() throws {
    try make("victim/old", "other/new")
    var recorder = WalkRecorder()
    recorder.isEntered = { path, _ in path == "victim" }
    recorder.onVisit = { [temporary] path in
      guard path.isEmpty else { return }
      try temporary.directory.removeTree("victim")
      try temporary.directory.rename("other", to: "victim", in: temporary.directory)
    }
    try recorder.walk(temporary.path)
    #expect(recorder.seen["victim/new"] != nil)
    #expect(recorder.problems.isEmpty)
  }

  /// Another thread creates and removes entries continuously: all other entries are visited, and no
  /// error is reported.
  @Test func aTreeThatChangesContinuouslyIsWalked() throws {
    for number in 0..<50 { try make(ByteString("stays/\(number)/f")) }
    let (path, end, ended) = (temporary.path, Counter(), DispatchSemaphore(value: 0))
    let rounds = Counter()
    Thread {
      defer { ended.signal() }
      guard let directory = try? Directory.open(path: path.appending("stays")) else { return }
      while end.value == 0 {
        let name = ByteString("\(rounds.add() % 50)")
        for child: ByteString in ["x", "y"] {
          guard let inside = try? directory.directory(name) else { continue }
          try? inside.createDirectory(child)
          if let below = try? inside.directory(child) { _ = try? below.create("file") }
          try? inside.rename(child, to: "moved", in: inside)
          try? inside.removeTree("moved")
        }
      }
    }.start()
    defer {
      end.add()
      ended.wait()
    }
    let last = Host.monotonicSeconds() + 300
    var walks = 0
    // On a busy machine, the other thread may start late.
    while walks < 200 || (rounds.value <= 50 && Host.monotonicSeconds() < last) {
      walks += 1
      var recorder = WalkRecorder()
      try recorder.walk(path)
      #expect(recorder.problems.map { "\($0.error)" } == [])
      for number in 0..<50 { #expect(recorder.seen[ByteString("stays/\(number)/f")] != nil) }
    }
    #expect(rounds.value > 50)
  }

  @Test func mountPointsAreFlagged() throws {
    guard try Mount.isPermitted() else { return }
    try make("plain/f", "file", "elsewhere")
    let mount = try Mount(on: temporary.directory, at: temporary.path, "volume")
    try make("volume/inside")
    let binding = try Mount(
      binding: temporary.path("elsewhere"), on: temporary.path("file"))
    var recorder = WalkRecorder()
    recorder.isEntered = { _, status in !status.isMountPoint }
    try recorder.walk(temporary.path)
    let flagged = recorder.seen.filter { $0.value.status.isMountPoint }.keys.sorted()
    #expect(flagged == ["file", "volume"])
    #expect(
      recorder.seen.keys.sorted() == ["elsewhere", "file", "plain", "plain/f", "volume"])
    var crossing = WalkRecorder()
    try crossing.walk(temporary.path)
    #expect(crossing.seen["volume/inside"]?.status.kind == .file)
    withExtendedLifetime((mount, binding)) {}
  }

  /// An overlay lists entries with other inode numbers than their status has.
  @Test func aFileSystemThatListsOtherInodesIsWalked() throws {
    guard try Mount.isPermitted() else { return }
    let volume = try Mount(on: temporary.directory, at: temporary.path, "volume")
    for name: ByteString in ["lower", "upper", "work", "merged"] {
      try temporary.directory.directory("volume").createDirectory(name)
    }
    for number in 0..<60 { try make(ByteString("volume/lower/d/\(number)")) }
    try make("volume/upper/d/added")
    guard let overlay = try? Mount(overlayBelow: temporary.path("volume")) else {
      print("skipped: no overlay file system here")
      return
    }
    var recorder = WalkRecorder()
    try recorder.walk(temporary.path("volume/merged"))
    #expect(recorder.seen.count == 62)
    let directory = try Directory.open(path: temporary.path("volume/merged/d"))
    for name in try directory.names() {
      let (walked, status) = (recorder.seen["d/" + name]?.status, try directory.status(name))
      #expect(walked?.identity == status.identity && walked?.isMountPoint == false)
    }
    withExtendedLifetime((overlay, volume)) {}
  }
}
