import SystemIO
import Testing

/// A visitor that records everything, and enters all directories except the excluded ones.
struct WalkRecorder: WalkVisitor {
  struct Seen {
    let status: FileStatus
    let depth: Int
    let state: Int
  }

  /// The visited entries by path below the root.
  var seen: [ByteString: Seen] = [:]
  /// Paths that were visited twice.
  var twice: [ByteString] = []
  /// The number of batches of each directory.
  var batches: [ByteString: Int] = [:]
  var problems: [WalkProblem] = []
  var vanished: [(name: ByteString, inode: UInt64)] = []
  /// The states of directories that were lost.
  var lost: [Int] = []
  /// Called with the path of each directory before its subdirectories are entered.
  var onVisit: (ByteString) throws -> Void = { _ in }
  var isEntered: (ByteString, FileStatus) -> Bool = { _, _ in true }

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Int,
    descent: inout WalkDescent<Int>
  ) {
    batches[directory.relativePath, default: 0] += 1
    for index in batch.entries.indices {
      let entry = batch.entries[index]
      let path = directory.relativePath.appending(batch.name(entry))
      let old = seen.updateValue(
        Seen(status: entry.status, depth: directory.depth, state: state), forKey: path)
      if old != nil { twice.append(path) }
      if entry.status.kind == .directory, isEntered(path, entry.status) {
        descent.enter(index, with: state + 1)
      }
    }
    do { try onVisit(directory.relativePath) } catch { Issue.record(error) }
  }

  mutating func failed(_ problem: WalkProblem, state: Int) { problems.append(problem) }

  mutating func vanished(_ name: ByteString, inode: UInt64, state: Int) {
    vanished.append((name, inode))
  }

  mutating func lost(state: Int) { lost.append(state) }

  /// Walks the tree below `path`.
  mutating func walk(_ path: ByteString) throws {
    var walk = Walk(try Directory.open(path: path))
    walk.run(&self, state: 0)
  }
}

/// A recorder to which a replaced directory is reported as lost.
struct StrictRecorder: WalkVisitor {
  static var isStrict: Bool { true }
  var recorder = WalkRecorder()

  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Int,
    descent: inout WalkDescent<Int>
  ) {
    recorder.visit(batch, of: directory, state: state, descent: &descent)
  }

  mutating func failed(_ problem: WalkProblem, state: Int) {
    recorder.failed(problem, state: state)
  }

  mutating func lost(state: Int) { recorder.lost(state: state) }
}
