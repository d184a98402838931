import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Small files that are stored in a batch.
struct SmallFilesTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Makes adjacent files: two equal ones of each size around a limit, and one that overlaps
  /// others.
  private func files(_ bytes: inout [UInt8]) -> [ContentWriter.SmallFile] {
    var random = SeededBytes(seed: 5)
    var files: [ContentWriter.SmallFile] = []
    for size in [0, 1, 127, 128, 129, 256, 4096, 100_000, ContentWriter.smallFile] {
      let start = bytes.count
      bytes += random.bytes(size)
      for copy in 0..<2 {
        files.append(
          ContentWriter.SmallFile(
            logicalPath: ByteString("folders/x/\(size)-\(copy)"), range: start..<bytes.count))
      }
    }
    files.append(ContentWriter.SmallFile(logicalPath: "folders/x/overlapping", range: 3..<50_000))
    return files
  }

  /// The result is the same as for files stored one by one.
  @Test func batchEqualsSingleFiles() throws {
    var bytes: [UInt8] = []
    let files = files(&bytes)
    let session = try repository.beginWriting()
    let contents = try session.withWriter { try $0.storeFiles(files, of: bytes.span) }
    let together = session.statistics
    #expect(together.newBlobs == 9 && together.knownBlobs == 8)
    let alone = try Repository.create(in: MemoryStorage(), program: "test").beginWriting()
    for (file, content) in zip(files, contents) {
      let expected = try alone.storeFile(
        logicalPath: file.logicalPath, bytes: Array(bytes[file.range]))
      #expect(content == expected, "\(file.logicalPath)")
    }
    let statistics = alone.statistics
    #expect(statistics.newBytes == together.newBytes)
    #expect(statistics.knownBytes == together.knownBytes)

    let entries = zip(files, contents).map { file, content in
      TreeEntry(name: file.logicalPath.lastComponent ?? "", node: .file(content))
    }
    let snapshot = try session.finish(repository.makeSnapshot(try session.storeTree(entries)))
    let reader = try repository.beginReading()
    for (file, entry) in zip(files, entries) {
      #expect(try reader.bytes(at: entry.name, in: snapshot) == Array(bytes[file.range]))
    }
  }

  @Test func emptyBatchStoresNothing() throws {
    let session = try repository.beginWriting()
    let bytes: [UInt8] = []
    #expect(try session.withWriter { try $0.storeFiles([], of: bytes.span) }.isEmpty)
    #expect(session.statistics.newBlobs == 0)
  }

  @Test func invalidPathIsRefused() throws {
    let session = try repository.beginWriting()
    let bytes: [UInt8] = [1, 2, 3]
    let files = [
      ContentWriter.SmallFile(logicalPath: "folders/x/good", range: 0..<1),
      ContentWriter.SmallFile(logicalPath: "folders/../bad", range: 1..<3),
    ]
    let error = #expect(throws: StoreError.self) {
      try session.withWriter { try $0.storeFiles(files, of: bytes.span) }
    }
    #expect(error?.description.contains("folders/../bad") == true, "\(error as Any)")
  }
}
