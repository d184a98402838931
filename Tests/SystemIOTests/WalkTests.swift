import Glibc
import SystemIO
import TestSupport
import Testing

struct WalkTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("walk") }

  /// The output of `find` for the tree below a path. Each entry ends with a NUL.
  private func found(_ root: String) throws -> Set<[UInt8]> {
    let outcome = try Program.run(
      "find", [root, "-mindepth", "1", "-printf", "%P\\n%s\\n%T@\\n%m\\n%i\\n%y\\n%n\\n%U\\n%G\\0"])
    #expect(outcome.code == 0)
    return Set(outcome.standardOutput.split(separator: 0).map(Array.init))
  }

  private func line(_ path: ByteString, _ status: FileStatus) -> [UInt8] {
    let kinds: [FileKind: String] = [
      .file: "f", .directory: "d", .symlink: "l", .fifo: "p", .socket: "s", .characterDevice: "c",
      .blockDevice: "b",
    ]
    let nanoseconds = String(status.modified.nanoseconds)
    let fraction = String(repeating: "0", count: 9 - nanoseconds.count) + nanoseconds + "0"
    let fields = [
      "\(status.size)", "\(status.modified.seconds).\(fraction)",
      String(status.permissions, radix: 8), "\(status.identity.inode)", kinds[status.kind] ?? "?",
      "\(status.links)", "\(status.user)", "\(status.group)",
    ]
    return Array(path.bytes) + Array(("\n" + fields.joined(separator: "\n")).utf8)
  }

  /// Creates a tree with arbitrary names, kinds and depths.
  private func makeTree(_ random: inout Seeded) throws {
    var directories: [ByteString] = [""]
    for _ in 0..<600 {
      let above = directories.randomElement(using: &random) ?? ""
      let name = ByteString(random.fileName(longest: 30))
      let directory = try Directory.open(path: temporary.path.appending(above))
      if try directory.statusIfPresent(name) != nil { continue }
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3:
        try directory.createDirectory(name)
        directories.append(above.appending(name))
      case 3: try directory.createLink(name, to: ByteString(random.fileName()))
      case 4: try directory.createSpecial(name, kind: .fifo, permissions: 0o644)
      case 5: try directory.createSpecial(name, kind: .socket, permissions: 0o600)
      default:
        try directory.create(name).write(random.bytes(Int.random(in: 0..<50, using: &random)))
      }
    }
  }

  /// Only the given names in the root are visited, with everything below them.
  @Test func onlyTheGivenNamesAreVisited() throws {
    // The names have all lengths, so that the NUL and the padding at the end of an entry vary.
    let names = (1...40).map { ByteString([UInt8](repeating: UInt8(ascii: "n"), count: $0)) }
    let long = ByteString([UInt8](repeating: UInt8(ascii: "l"), count: 255))
    for name in names + [long, "d/x", "d/e/y", "other/z", "none"] {
      try temporary.write("text", at: name)
    }
    try Directory.open(path: temporary.path).remove("none")
    let asked = names + [long, "d", "none"]
    var walk = Walk(try Directory.open(path: temporary.path), only: asked)
    for _ in 0..<2 {
      var recorder = WalkRecorder()
      walk.run(&recorder, state: 0)
      #expect(Set(recorder.seen.keys) == Set(names + [long, "d", "d/x", "d/e", "d/e/y"]))
      #expect(recorder.problems.isEmpty && recorder.vanished.isEmpty && recorder.twice.isEmpty)
    }
    var none = WalkRecorder()
    var empty = Walk(try Directory.open(path: temporary.path), only: ["none"])
    empty.run(&none, state: 0)
    #expect(none.seen.isEmpty && none.problems.isEmpty && none.vanished.isEmpty)
  }

  @Test func findsTheSameEntriesAsFind() throws {
    var random = Seeded.fresh()
    try makeTree(&random)
    var recorder = WalkRecorder()
    try recorder.walk(temporary.path)
    let mine = Set(recorder.seen.map { line($0.key, $0.value.status) })
    let others = try found(temporary.string)
    #expect(mine == others, "seed \(random.seed)")
    #expect(others.count > 400)
    #expect(recorder.twice == [] && recorder.problems.isEmpty)
    for (path, seen) in recorder.seen {
      #expect(seen.depth == path.components.count - 1)
      #expect(seen.state == seen.depth)
    }
  }

  @Test func walksATreeOfTheSystem() throws {
    var recorder = WalkRecorder()
    try recorder.walk("/usr/share/doc")
    let mine = Set(recorder.seen.map { line($0.key, $0.value.status) })
    #expect(try mine == found("/usr/share/doc"))
  }

  @Test func theStatusHasNoBirthTime() throws {
    try temporary.write("12345", at: "a/f")
    var recorder = WalkRecorder()
    try recorder.walk(temporary.path)
    let walked = try #require(recorder.seen["a/f"]?.status)
    let status = try temporary.directory.directory("a").status("f")
    #expect(walked.born == nil)
    #expect(walked.identity == status.identity && walked.size == 5)
    #expect(walked.modified == status.modified && walked.changed == status.changed)
    #expect(walked.allocated == status.allocated && walked.permissions == status.permissions)
  }

  @Test func aLargeDirectoryIsVisitedInBatches() throws {
    let directory = try temporary.directory.makeDirectory("large")
    for number in 0..<10_000 { try directory.create(ByteString("entry-\(number)")).close() }
    var recorder = WalkRecorder()
    try recorder.walk(temporary.path)
    #expect(recorder.seen.count == 10_001)
    #expect(recorder.twice == [])
    let batches = try #require(recorder.batches["large"])
    #expect(batches > 2 && batches < 100)
    #expect(recorder.batches[""] == 1)
    #expect(Set(recorder.seen.keys) == Set(try directory.names().map { "large/" + $0 } + ["large"]))
  }

  @Test func theLongestNamesAreVisited() throws {
    let directory = try temporary.directory.makeDirectory("long")
    var names: Set<ByteString> = []
    for number in 1...600 {
      let name = ByteString("\(number)-" + String(repeating: "x", count: 255 - "\(number)-".count))
      try directory.create(name).close()
      names.insert(name)
    }
    for length in 1...12 { names.insert(ByteString(String(repeating: "y", count: length))) }
    for name in names where name.count < 20 { try directory.create(name).close() }
    for odd: ByteString in ["...", ".a", "..b", ".-."] {
      try directory.create(odd).close()
      names.insert(odd)
    }
    var recorder = WalkRecorder()
    try recorder.walk(temporary.path("long"))
    #expect(Set(recorder.seen.keys) == names)
    #expect(try directory.names() == names.sorted())
  }

  @Test func theVisitorChoosesTheDirectoriesToEnter() throws {
    for path: ByteString in ["in/f", "in/deep/f", "out/f", "in/out/f"] {
      try temporary.write("x", at: path)
    }
    var recorder = WalkRecorder()
    recorder.isEntered = { path, _ in path.lastComponent != "out" }
    try recorder.walk(temporary.path)
    #expect(
      recorder.seen.keys.sorted() == ["in", "in/deep", "in/deep/f", "in/f", "in/out", "out"])
  }

  @Test func aSecondWalkVisitsTheCurrentTree() throws {
    try temporary.write("x", at: "a/f")
    var walk = Walk(try Directory.open(path: temporary.path))
    var (first, second) = (WalkRecorder(), WalkRecorder())
    walk.run(&first, state: 0)
    try temporary.write("x", at: "b/g")
    walk.run(&second, state: 0)
    #expect(first.seen.keys.sorted() == ["a", "a/f"])
    #expect(second.seen.keys.sorted() == ["a", "a/f", "b", "b/g"])
  }

  @Test func anEmptyDirectoryHasNoEntries() throws {
    var recorder = WalkRecorder()
    try recorder.walk(temporary.path)
    #expect(recorder.seen.isEmpty && recorder.problems.isEmpty)
  }

  @Test func theVisitorMayReadFilesOfTheDirectory() throws {
    try temporary.write("content", at: "a/f")
    struct Reader: WalkVisitor {
      var contents: [[UInt8]?] = []
      mutating func visit(
        _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
        descent: inout WalkDescent<Void>
      ) {
        for index in batch.entries.indices {
          let entry = batch.entries[index]
          if entry.status.kind == .directory { descent.enter(index, with: ()) }
          guard entry.status.kind == .file else { continue }
          contents.append(try? directory.directory.file(batch.name(entry)).readAll(limit: 100))
          #expect(Array(batch.bytes[entry.nameRange]) == Array("f".utf8))
        }
      }
      mutating func failed(_ problem: WalkProblem, state: Void) { contents.append(nil) }
    }
    var walk = Walk(try Directory.open(path: temporary.path))
    var reader = Reader()
    walk.run(&reader, state: ())
    #expect(reader.contents == [Array("content".utf8)])
  }
}

extension ByteString {
  static func + (left: ByteString, right: ByteString) -> ByteString {
    ByteString(Array(left.bytes) + Array(right.bytes))
  }
}
