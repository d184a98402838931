import ArchiveStore
import Backup
import Interchange
import SystemIO
import TestSupport
import Testing

/// An archive of a directory whose storage fails while it is written.
@Suite(.spreadScans) struct ArchiveDumpTests {
  /// A repository in memory with a file too large for the reader's memory, and a file after it.
  private struct Base {
    let storage = MemoryStorage()
    let repository: Repository
    let snapshot: StoredSnapshot
    static let size = 36_000_000

    init() throws {
      let fixture = try Fixture(inMemory: true)
      try fixture.directory.write("small", at: "tree/second")
      let line = "seq 1 5000000 | head -c \(Self.size) > tree/first"
      _ = try Program.run("/bin/sh", ["-ec", line], in: fixture.directory.url)
      repository = try Repository.create(in: storage, program: "test")
      let plan = BackupPlan.make(try fixture.scan())
      let report = try BackupOperation(
        plan, to: repository, BackupRequest(program: "test", workers: 1)
      ).run()
      snapshot = try #require(report.snapshot)
    }

    func removePacks() throws(StoreError) {
      for path in try storage.objects() where path.components.first == "packs" {
        try storage.remove(path)
      }
    }
  }

  /// If a blob is lost between the verification of a file and its output, it cannot be omitted: no
  /// bytes may follow that could be mistaken for its content.
  @Test func aBlobLostAfterTheFileHeaderEndsTheArchive() throws {
    let base = try Base()
    let reader = try base.repository.beginReading()
    guard case .directory(let tree, _) = try reader.source("folders/tree", in: base.snapshot) else {
      Issue.record("no directory")
      return
    }
    var pieces: [Int] = []
    var excluded: [PathRemark] = []
    var archive = try TarSink { bytes throws(InterchangeError) in
      if pieces.isEmpty { try? base.removePacks() }
      pieces.append(bytes.count)
    }
    var dump = ExportOperation(from: reader) { excluded.append($1) }
    let error = #expect(throws: StoreError.self) { try dump.write(tree, to: &archive) }
    #expect(error?.kind == .damaged)
    #expect(error?.subject == "first" && error?.hint?.contains("run the command again") == true)
    #expect(excluded.isEmpty && dump.damaged == 0)
    // A header, a part of the bytes that it announces, and nothing after them.
    #expect(pieces.first.map { $0 % 512 } == 0)
    #expect(pieces.dropFirst().reduce(0, +) < Base.size)
  }

  /// The progress of a dump counts the written bytes of the files, without headers.
  @Test func progressCountsTheBytesOfFiles() throws {
    let base = try Base()
    let watch = ReadingWatch(base.repository) { false }
    let reader = try base.repository.beginReading(watch: watch)
    var given = 0
    var archive = try TarSink { bytes throws(InterchangeError) in given += bytes.count }
    var dump = ExportOperation(from: reader) { _, _ in }
    try dump.write(base.snapshot.snapshot.tree, to: &archive)
    let progress = watch.counters.progress
    #expect(progress.bytesDone == base.snapshot.snapshot.totals.bytes)
    #expect(progress.bytesDone == Base.size + 5 && given > Base.size + 5)
    #expect(progress.filesDone == 2 && progress.active == "folders/tree/second")
  }

  /// An archive that is interrupted within a file reports the interruption, not a lost file.
  @Test(arguments: [false, true])
  func anInterruptionIsNotReportedAsALostFile(isGiving: Bool) throws {
    let base = try Base()
    let begun = ProgressCounters()
    let watch = ReadingWatch(base.repository) { begun.progress.filesDone > 0 }
    let reader = try base.repository.beginReading(watch: watch)
    // A file is verified before its header is written.
    if !isGiving { begun.didHandle(files: 1) }
    var archive = try TarSink { _ throws(InterchangeError) in begun.didHandle(files: 1) }
    var dump = ExportOperation(from: reader) { _, _ in }
    guard
      let entry = try reader.entry(at: "folders/tree/first", in: base.snapshot.snapshot.tree)
    else { throw Program.Failure(description: "no entry") }
    let error = #expect(throws: StoreError.self) {
      try dump.write(entry, as: "first", to: &archive)
    }
    #expect(error == watch.interruption && dump.damaged == 0)
    #expect(watch.counters.progress.bytesDone == 0)
  }
}
