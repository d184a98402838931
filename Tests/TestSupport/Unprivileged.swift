import Foundation

/// Runs code as a user without privileges, so that a test that runs as root meets the same errors
/// as any other user.
///
/// Only the file system user and group of this thread change (`setfsuid(2)`): the kernel removes
/// the capabilities that override permissions from this thread only. So `body` must stay on its
/// thread.
package enum Unprivileged {
  /// Debian's `nobody` and `nogroup`.
  package static let user: UInt32 = 65534

  /// Runs `body` as nobody, or as the current user if that is not root; with `keepingGroup` in the
  /// group of the process, for code that sets the group of new files.
  package static func run<Result>(
    keepingGroup: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    guard geteuid() == 0 else { return try body() }
    guard let setUser = call("setfsuid"), let setGroup = call("setfsgid") else {
      throw Program.Failure(description: "this C library has no setfsuid")
    }
    // Group first, and restored last: without privileges it can no longer be changed.
    if !keepingGroup { _ = setGroup(user) }
    _ = setUser(user)
    defer {
      _ = setUser(0)
      if !keepingGroup { _ = setGroup(0) }
    }
    // An invalid ID changes nothing and returns the current one.
    guard setUser(UInt32.max) == Int32(user) else {
      throw Program.Failure(description: "setfsuid has no effect here")
    }
    return try body()
  }

  private typealias SetID = @convention(c) (UInt32) -> Int32

  private static func call(_ name: String) -> SetID? {
    guard let found = dlsym(dlopen(nil, RTLD_NOW), name) else { return nil }
    return unsafeBitCast(found, to: SetID.self)
  }
}
