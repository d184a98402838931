internal import SandboxModel
internal import SystemIO

/// The errors of one package: they all begin alike and name its path.
struct PackageFault: Sendable {
  /// The package's path.
  let path: ByteString

  static let attempt = "open the package"

  /// A package that is damaged, or none of an app.
  func damaged(_ reason: String, hint: String = "fetch it or build it again") -> ModelError {
    ModelError(.package, Self.attempt, on: path, reason, hint: hint)
  }

  /// A package that would not be safe to unpack.
  func unsafe(_ reason: String, hint: String? = nil) -> ModelError {
    ModelError(
      .unsafePackage, Self.attempt, on: path, reason,
      hint: hint ?? "do not use it, unless who made it makes it again without that")
  }

  /// A package that asks for more than is given.
  func tooMuch(_ reason: String) -> ModelError {
    unsafe(reason, hint: "do not use it, unless you know why it is so large")
  }

  /// A package that is another one than a moment ago.
  func changed(_ what: ByteString) -> ModelError {
    damaged(
      "its '\(what)' changed since it was looked at", hint: "wait until nothing writes to it")
  }
}

extension ModelError {
  /// Makes an error of a failed system call on a package.
  init(package error: SystemError) {
    self.init(
      .system, PackageFault.attempt, on: error.path, error.reason, hint: error.hint)
  }
}

/// Calls the system for a package.
func calling<Result: ~Copyable>(
  _ body: () throws(SystemError) -> Result
) throws(ModelError) -> Result {
  do throws(SystemError) {
    return try body()
  } catch {
    throw ModelError(package: error)
  }
}
