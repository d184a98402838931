internal import SystemIO

extension AtomicDirectory {
  /// Creates the temporary directory of an export.
  ///
  /// - Throws: `unrepresentable` if the directory is not empty; `system`.
  static func make(
    path: ByteString, _ action: String
  ) throws(InterchangeError) -> AtomicDirectory {
    do throws(SystemError) { return try AtomicDirectory(path: path) } catch {
      throw error.isExisting
        ? notEmpty(path, action) : InterchangeError(error, action, subject: path)
    }
  }

  static func notEmpty(_ path: ByteString, _ action: String) -> InterchangeError {
    InterchangeError(
      .unrepresentable, action, subject: path, reason: "the directory is not empty",
      hint: "name a directory that does not exist")
  }
}
