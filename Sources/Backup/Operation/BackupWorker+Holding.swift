internal import ArchiveStore
internal import DeviceScan
internal import SystemIO

extension BackupWorker {
  /// Stores the held files if the next file does not fit beside them.
  func makeRoom(for index: Int, in directory: DirectoryContext) throws {
    guard directory.mayHold(index), !held.hasRoom(for: directory.scan.entries[index].status.size)
    else { return }
    try storeHeld()
  }

  /// Stores the held files and delivers the work items that waited for them.
  func storeHeld() throws {
    let contents = try held.contents { files, bytes in
      try writer.storeFiles(files, of: bytes)
    }
    precondition(contents.count == held.files.count, "each file has its content")
    for (file, content) in zip(held.files, contents) {
      var read = file.read
      read.entry.node = .file(content)
      read.heldAt = nil
      try file.context.add(file.index, read)
    }
    // Abandoned work items, and those of a run that ended, do not wait: record what was read of
    // them.
    for file in held.files { file.context.notes.flush() }
    for context in held.removeAll() { try deliver(context) }
  }
}

/// The content of a file after reading.
enum ReadContent {
  case stored(Content)
  /// The range of the bytes in the batch of small files.
  case held(Range<Int>)

  /// The size in bytes.
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
  /// Whether a file may be held until it is stored together with others, by its scanned status: it
  /// is small and has no other hard links.
  func mayHold(_ index: Int) -> Bool {
    let status = scan.entries[index].status
    return status.kind == .file && status.links == 1 && SmallFileBatch.sizes ~= status.size
  }
}
