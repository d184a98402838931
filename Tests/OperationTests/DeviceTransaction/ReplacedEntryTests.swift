import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// Another program creates entries at the paths of a journal's step while it is executed.
struct ReplacedEntryTests {
  private let directory: TemporaryDirectory
  private let step = JournalStep(path: "note", source: 1, kept: 2)

  init() throws { directory = try TemporaryDirectory("steps", inMemory: true) }

  private func write(_ text: String, _ path: String) throws {
    try directory.write(text, at: ByteString(path))
  }

  /// The texts of the files in a directory.
  private func texts(_ name: ByteString) throws -> Set<String> {
    let names = try Directory.open(path: directory.path(name)).names()
    return Set(
      try names.map {
        String(decoding: try directory.read(name.appending($0)), as: UTF8.self)
      })
  }

  /// A runner of the step below new directories.
  private func runner(in base: String) throws -> StepRunner {
    StepRunner(
      try ["final", "staged", "trash"].map { name in
        let path = directory.path(ByteString("\(base)/\(name)"))
        _ = try Directory.make(path: path)
        return JournalRecord.Root(path: path, inode: nil)
      })
  }

  /// The program replaces the present entry before each status call in turn. Its entry is kept,
  /// except if it appears after the last call, because nothing examines the path between that call
  /// and the rename.
  @Test func anEntryThatReplacesThePresentOneIsKept() throws {
    var (survived, lost) = (0, 0)
    for call in 1... {
      let base = "\(call)"
      let runner = try runner(in: base)
      try write("old", "\(base)/final/note")
      try write("new", "\(base)/staged/note")
      try write("app", "\(base)/app/note")
      let (app, final) = (
        directory.path(ByteString("\(base)/app")), directory.path(ByteString("\(base)/final"))
      )
      let plan = Faults.Plan(before: [.status], at: call) {
        guard let from = try? Directory.open(path: app), let to = try? Directory.open(path: final)
        else { return }
        try? from.rename("note", to: "note", in: to)
      }
      let isApplied = try Faults.inject(plan) { try runner.apply(step) }
      #expect(try isApplied && texts(ByteString("\(base)/final")) == ["new"], "call \(call)")
      let kept = try texts(ByteString("\(base)/trash"))
      guard plan.hasFired else {
        #expect(kept == ["old"] && call > 3)
        break
      }
      // Before the old entry was kept, the program has removed it itself.
      if kept != ["old"] {
        #expect(kept.contains("app"), "call \(call): \(kept)")
        if kept.contains("old") { survived += 1 }
      } else {
        lost += 1
      }
    }
    #expect(survived > 0 && lost <= 1, "\(survived) kept, \(lost) lost")
  }

  @Test func anEntryThatAppearsWhereNothingWasStays() throws {
    let runner = try runner(in: "absent")
    try write("new", "absent/staged/note")
    let final = directory.path("absent/final")
    let plan = Faults.Plan(before: [.rename], at: 1) {
      try? Directory.open(path: final).create("note").write(Array("app".utf8))
    }
    let error = #expect(throws: SystemError.self) {
      _ = try Faults.inject(plan) { try runner.apply(step) }
    }
    #expect(plan.hasFired && error?.isExisting == true)
    #expect(try texts("absent/final") == ["app"] && texts("absent/staged") == ["new"])
  }
}
