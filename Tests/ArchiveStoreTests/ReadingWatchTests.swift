import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Read operations report their progress and end on request.
struct ReadingWatchTests {
  private let repository: Repository
  private let root: TreeReference
  private static let files = 30

  /// Makes three directories of ten files and a FIFO each.
  init() throws {
    repository = try Repository.create(in: MemoryStorage(), program: "test")
    let session = try repository.beginWriting()
    let directories = try (0..<3).map { directory in
      var entries = try (0..<10).map { number in
        let path = ByteString("\(directory)/\(number)")
        let content = try session.storeFile(logicalPath: path, bytes: Array("\(path)".utf8))
        return TreeEntry(name: ByteString("\(number)"), node: .file(content))
      }
      entries.append(TreeEntry(name: "fifo", node: .fifo))
      return TreeEntry(
        name: ByteString("\(directory)"), node: .directory(try session.storeTree(entries)))
    }
    root = try session.storeTree(directories)
    _ = try session.finish(repository.makeSnapshot(root))
  }

  private typealias Walk = @Sendable (RepositoryReader, TreeReference) throws -> Void

  private static let walks: [Walk] = [
    { try $0.walkPastDamage($1) { _, _ in .enter } },
    { try $0.walkTogether([$1, $1]) { _, _ in .enter } },
  ]

  @Test(arguments: 0..<2)
  func walkCountsFiles(_ number: Int) throws {
    let watch = ReadingWatch(repository) { false }
    try Self.walks[number](try repository.beginReading(watch: watch), root)
    #expect(
      watch.counters.progress == ProgressCounters.State(filesDone: Self.files, active: "2"))
  }

  @Test(arguments: 0..<2)
  func walkEndsOnRequest(_ number: Int) throws {
    let location = ProgressCounters()
    let watch = ReadingWatch(repository) {
      location.didOpen()
      return location.progress.opened > 5
    }
    let reader = try repository.beginReading(watch: watch)
    let error = #expect(throws: StoreError.self) { try Self.walks[number](reader, root) }
    #expect(error == watch.interruption && error?.kind == .interrupted)
    // The files follow a directory.
    #expect(watch.counters.progress.filesDone == 4)
  }

  @Test func missingDirectoryIsAnError() throws {
    let gone = TreeReference(Blake2b.hash([1]))
    for walk in Self.walks {
      let watch = ReadingWatch(repository) { false }
      try walk(try repository.beginReading(watch: watch), gone)
      #expect(watch.counters.progress.problems > 0)
    }
  }

  @Test func statisticsCountBlobs() throws {
    let watch = ReadingWatch(repository, of: "blob") { false }
    let statistics = try repository.statistics(of: repository.heads(), watch: watch)
    let blobs = statistics.data.count + statistics.trees.count + statistics.lists.count
    let progress = watch.counters.progress
    #expect(blobs == Self.files + 4 && progress.noun == "blob")
    #expect(progress.filesDone == blobs && progress.filesToDo == blobs)
  }

  @Test func statisticsEndOnRequest() throws {
    let watch = ReadingWatch(repository) { true }
    let error = #expect(throws: StoreError.self) {
      try repository.statistics(of: repository.heads(), watch: watch)
    }
    #expect(error == watch.interruption)
  }
}
