package import SandboxModel
internal import SystemIO

/// The entries of a package, in extraction order.
package struct PackageEntries: EntrySource, ~Copyable {
  /// The reader for the form of the package.
  private enum Reader {
    case folder(DirectoryReader)
    case archive(ArchiveReader)
  }

  private let rows: [PackageTable.Row]
  private let reader: Reader
  private var position = 0
  private var isInFile = false

  init(_ rows: [PackageTable.Row], directory: DirectoryReader) {
    self.rows = rows
    reader = .folder(directory)
  }

  init(_ rows: [PackageTable.Row], archive: ArchiveReader) {
    self.rows = rows
    reader = .archive(archive)
  }

  package mutating func next() throws(ModelError) -> PackageEntry? {
    isInFile = false
    guard position < rows.count else {
      switch reader {
      case .folder(let reader): try reader.finish()
      case .archive(let reader): try reader.finish()
      }
      return nil
    }
    let row = rows[position]
    position += 1
    if case .file = row.entry.kind {
      switch reader {
      case .folder(let reader): try reader.open(row)
      case .archive(let reader): try reader.open(row)
      }
      isInFile = true
    }
    return row.entry
  }

  package mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int {
    guard isInFile else { return 0 }
    return switch reader {
    case .folder(let reader): try reader.read(into: &buffer)
    case .archive(let reader): try reader.read(into: &buffer)
    }
  }
}
