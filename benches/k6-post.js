// k6: POST of 64 bytes by as many users as there are connections; CONNECTIONS, SECONDS and URL are given.
import http from 'k6/http';
const body = 'x'.repeat(64);
export const options = {
    vus: Number(__ENV.CONNECTIONS), duration: `${__ENV.SECONDS}s`, discardResponseBodies: true, systemTags: [],
};
export default function () { http.post(__ENV.URL, body); }
