import Codecs
import SystemIO

@testable import Backup

/// Reads untrusted bytes as a state file; decodes every entry in full. For fuzzing.
enum StateExamination {
  /// Reads the bytes of a whole file as a state and as an interrupted run's file; returns the
  /// number of entries in them.
  static func examine(_ bytes: [UInt8], as key: StateKey) -> Int {
    var count = 0
    if let file = try? Descriptor.inMemory(bytes), let known = try? KnownState(file, key) {
      var walk = Walk(file: known.file)
      for container in known.containers { walk.add(container.entry) }
      count += walk.run()
    }
    if let file = try? Descriptor.inMemory(bytes) {
      let run = ResumeFile(file)
      for key in run.keys {
        for cursor in run.entries(of: key) { count += decode(cursor) }
        count += run.batches(of: key).reduce(0) { $0 + (run.filePart(at: $1)?.pieces.count ?? 0) }
      }
    }
    return count
  }

  /// Reads bytes as a record of each kind, without verifying a checksum, which would refuse all
  /// damage; returns the number of entries in them.
  static func examineRecord(_ bytes: [UInt8]) -> Int {
    var count = 0
    if let directory = DirectoryRecord.Contents(bytes) {
      count += directory.pages.count
      if let page = EntryPage(bytes, from: DirectoryRecord.Layout.header) { count += decode(page) }
    }
    if let page = EntryPage(bytes, from: 0) { count += decode(page) }
    count += ChunkCheckpoint.Piece.read(bytes.span, ofSize: .max)?.count ?? 0
    let containers = ContainerTable.read(bytes) ?? []
    for container in containers { decode(container.entry) }
    return count + containers.count + (KnownState.Head(bytes) == nil ? 0 : 1)
  }

  private static func decode(_ page: EntryPage) -> Int {
    decode(EntryPage.Cursor(interrupted: page))
  }

  private static func decode(_ cursor: EntryPage.Cursor) -> Int {
    var (cursor, count) = (cursor, 0)
    while let entry = cursor.next() {
      decode(entry)
      count += 1
    }
    return count
  }

  /// Reads all fields of an entry.
  private static func decode(_ entry: KnownEntry) {
    _ = (entry.kind, entry.inode, entry.size, entry.modified, entry.changed, entry.isStable)
    _ = (entry.name, entry.directory, entry.lists, entry.entry)
  }

  /// A walk through all directories of a state that visits each record once.
  private struct Walk {
    let file: RecordFile
    var open: [RecordPointer] = []
    var seen: Set<RecordPointer> = []
    var count = 0

    mutating func add(_ entry: KnownEntry) {
      decode(entry)
      count += 1
      if let directory = entry.directory, seen.insert(directory).inserted { open.append(directory) }
      if let lists = entry.lists { _ = RecordedLists.OfFile(at: lists, in: file) }
    }

    mutating func run() -> Int {
      while let pointer = open.popLast() {
        guard let directory = DirectoryRecord.Contents(file.read(pointer)) else { continue }
        var cursor = EntryPage.Cursor(directory, file)
        while let entry = cursor.next() { add(entry) }
      }
      return count
    }
  }
}
