internal import ArchiveStore
internal import SystemIO

extension BackupWorker {
  /// Stores what is held where the next file would not have room beside it.
  func makeRoom(for index: Int, in directory: DirectoryContext) throws {
    guard directory.mayHold(index), !held.hasRoom(for: directory.scan.entries[index].status.size)
    else { return }
    try storeHeld()
  }

  /// Stores the files that are held, and delivers the units that waited for them.
  func storeHeld() throws {
    let contents = try held.contents { files, bytes in
      try writer.storeFiles(files, of: bytes)
    }
    precondition(contents.count == held.files.count, "each file has its content")
    for (file, content) in zip(held.files, contents) {
      var read = file.read
      read.entry.node = .file(content)
      read.heldAt = nil
      try file.hand.add(file.index, read)
    }
    // Units that were given up, or that the run ended in, do not wait; what was read of them is noted.
    for file in held.files { file.hand.notes.flush() }
    for hand in held.removeAll() { try deliver(hand) }
  }
}

/// What became of the bytes of a file.
enum ReadContent {
  case stored(Content)
  /// They are held, and lie there.
  case held(Range<Int>)

  /// Bytes.
  var size: UInt64 {
    switch self {
    case .stored(let content): content.size
    case .held(let place): UInt64(place.count)
    }
  }

  var stored: Content? { if case .stored(let content) = self { content } else { nil } }
  var heldAt: Range<Int>? { if case .held(let place) = self { place } else { nil } }
}

extension DirectoryContext {
  /// Whether a file's bytes may wait for others', by what the scan says: it is small, and no other
  /// name waits for it.
  func mayHold(_ index: Int) -> Bool {
    let status = scan.entries[index].status
    return status.kind == .file && status.links == 1 && SmallFileBatch.sizes ~= status.size
  }
}
