-- wrk's side of the HTTP jobs: POST a body of 64 bytes.
wrk.method = "POST"
wrk.body = string.rep("x", 64)
