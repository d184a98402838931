internal import SandboxModel
internal import SystemIO

/// Reads the files of a package by their tickets, in the order of the package's table.
protocol PackageReader: AnyObject {
  /// Goes to a file.
  func open(_ row: PackageTable.Row) throws(ModelError)
  /// Fills the buffer, or as much of it as is left of the file; 0 behind its end.
  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int
  /// Behind the last entry: whether the package is still what it was.
  func finish() throws(ModelError)
}

/// Reads the files of an archive.
final class ArchiveReader: PackageReader {
  private let zip: ZipFile
  private let stream: ZipStream

  init(_ zip: ZipFile) throws(ModelError) {
    self.zip = zip
    stream = try ZipStream(zip)
  }

  func open(_ row: PackageTable.Row) throws(ModelError) {
    if let ticket = row.ticket { try stream.go(to: ticket) }
  }

  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int { try stream.read(into: &buffer) }

  func finish() throws(ModelError) { try zip.checkUnchanged() }
}
