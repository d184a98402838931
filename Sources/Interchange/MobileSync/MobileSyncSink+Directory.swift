package import SystemIO

extension MobileSyncSink {
  /// Throws `unrepresentable` if a directory exists and is not empty. For a check before long work.
  package static func requireEmpty(_ path: ByteString) throws(InterchangeError) {
    guard let directory = try? Directory.open(path: path) else { return }
    AtomicDirectory.removeAbandoned(in: directory)
    let isEmpty: Bool
    do throws(SystemError) { isEmpty = try directory.isEmpty() } catch {
      throw InterchangeError(error, action, subject: path)
    }
    guard isEmpty else { throw AtomicDirectory.notEmpty(path, action) }
  }
}
