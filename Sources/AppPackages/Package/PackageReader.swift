internal import SandboxModel
internal import SystemIO

/// Reads the files of a package by ticket, in the order of the package's table.
protocol PackageReader: AnyObject {
  /// Opens a file.
  func open(_ row: PackageTable.Row) throws(ModelError)
  /// Reads into the buffer and returns the number of bytes: less than the buffer's size only at the
  /// end of the file, and 0 after it.
  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int
  /// Checks after the last entry that the package has not changed.
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
