internal import SandboxModel
internal import SystemIO

/// Creates the errors of a package, with a common action and the package's path.
struct PackageFault: Sendable {
  /// The package's path.
  let path: ByteString

  static let action = "open the package"

  /// Returns the error for a package that is damaged or does not contain an app.
  func damaged(_ reason: String, hint: String = "download or build it again") -> ModelError {
    ModelError(.package, Self.action, on: path, reason: reason, hint: hint)
  }

  /// Returns the error for a package that is not safe to extract.
  func unsafe(_ reason: String, hint: String? = nil) -> ModelError {
    ModelError(
      .unsafePackage, Self.action, on: path, reason: reason,
      hint: hint ?? "do not use it unless its author provides a corrected package")
  }

  /// Returns the error for a package that exceeds a limit.
  func limitExceeded(_ reason: String) -> ModelError {
    unsafe(reason, hint: "do not use it unless you know why it is so large")
  }

  /// Returns the error for a package that changed since it was opened.
  func changed(_ what: ByteString) -> ModelError {
    damaged(
      "its '\(what)' changed since it was opened", hint: "wait until no process writes to it")
  }
}

extension ModelError {
  /// Creates an error for a failed system call on a package.
  init(package error: SystemError) {
    self.init(error, PackageFault.action)
  }
}

/// Runs system calls for a package and converts their errors.
func calling<Result: ~Copyable>(
  _ body: () throws(SystemError) -> Result
) throws(ModelError) -> Result {
  do throws(SystemError) {
    return try body()
  } catch {
    throw ModelError(package: error)
  }
}
